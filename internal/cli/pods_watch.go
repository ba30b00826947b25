// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"tidekeeper.dev/tidekeeper/internal/podwatch"
)

func (a *app) watchPodsCommand() *cobra.Command {
	var flags podFlags
	var history bool
	var format string
	cmd := &cobra.Command{
		Use:   "watch [POD...]",
		Short: "What happens to pods, a line for each transition as it happens",
		Long: `watch prints a line for each thing that happens to a pod: its phase, its
conditions with status and reason, what its containers do and wait for, and its
deletion. Of pods that are there at first it prints how they are, with --history
also how they came to be so. A pod that is named need not be there yet.

A lost connection is taken up again. What happened meanwhile is told as far as
the pods' timestamps keep it, nothing twice; states that came and went without a
trace cannot be known. Times are those of the cluster, in whole seconds; ~ marks
one that it does not tell, and is when the line was read. It ends with Ctrl-C.`,
		Example: `  kubectl tide pods watch -l app=web -n shop
  kubectl tide pods watch web-0 web-1
  kubectl tide pods watch -A -o json | jq -r 'select(.name == "Ready") | [.pod, .to] | @tsv'`,
		ValidArgsFunction: a.namesOfPods(),
		RunE: func(cmd *cobra.Command, args []string) error {
			if format != "" && format != "json" {
				return fmt.Errorf("-o %s: write json, or leave it out", format)
			}
			choice, err := a.choosePods(flags, args)
			if err != nil {
				return err
			}
			return a.watchPods(cmd.Context(), choice, history, format == "json")
		},
	}
	flags.addTo(cmd)
	cmd.Flags().BoolVar(&history, "history", false, "also tell how the pods that are there came to be what they are")
	cmd.Flags().StringVarP(&format, "output", "o", "", "json: an object on each line")
	_ = cmd.RegisterFlagCompletionFunc("output", cobra.FixedCompletions([]string{"json"}, cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

func (a *app) watchPods(ctx context.Context, choice podChoice, history, asJSON bool) error {
	config, err := a.config()
	if err != nil {
		return err
	}
	config.ContentType, config.AcceptContentTypes = runtime.ContentTypeProtobuf, runtime.ContentTypeProtobuf+","+runtime.ContentTypeJSON
	core, err := corev1client.NewForConfig(config)
	if err != nil {
		return err
	}
	narrow := func(options *metav1.ListOptions) {
		options.LabelSelector = choice.selector.String()
		if len(choice.names) == 1 {
			options.FieldSelector = fields.OneTermEqualSelector(metav1.ObjectNameField, choice.names[0]).String()
		}
	}
	// What is wrong from the start is told at once, and not tried again.
	first := metav1.ListOptions{Limit: 1}
	narrow(&first)
	if pods, err := core.Pods(choice.namespace).List(ctx, first); err != nil {
		return err
	} else if len(pods.Items) == 0 {
		c, err := client.New(config, client.Options{Scheme: scheme, Mapper: newMapper()})
		if err != nil {
			return err
		}
		if err := namespaceExists(ctx, c, choice.namespace); err != nil {
			return err
		}
	}
	names := map[string]bool{}
	for _, name := range choice.names {
		names[name] = true
	}
	p := newPodLines(a, choice.namespace == "", asJSON)
	watcher := &podwatch.Watcher{
		Source:  cache.NewFilteredListWatchFromClient(core.RESTClient(), "pods", choice.namespace, narrow),
		Names:   names,
		History: history,
		Tell:    p.print,
		Began: func(pods, unready int) {
			switch {
			case pods == 0:
				p.note("There are no such pods yet.")
			case unready == 0:
				p.note("Watching " + plural(pods, "pod") + ", all ready.")
			default:
				p.note(fmt.Sprintf("Watching %s, %d not ready.", plural(pods, "pod"), unready))
			}
		},
		Lost: func(err error) {
			_, message := explainError(err)
			p.note("Lost the connection: " + message + ". Trying again.")
		},
		Regained: func() { p.note("Connected again.") },
		Dropped: func(pod string, transitions int, err error) {
			p.note(fmt.Sprintf("Dropped %s of pod %s, tried four times: %v", plural(transitions, "transition"), pod, err))
		},
	}
	return watcher.Run(ctx)
}

// podLines prints transitions, for programs or for people.
type podLines struct {
	*app
	namespaces bool
	asJSON     bool

	mu     sync.Mutex
	header bool  // it is printed
	widths []int // of the columns, so far
}

func newPodLines(a *app, namespaces, asJSON bool) *podLines {
	p := &podLines{app: a, namespaces: namespaces, asJSON: asJSON}
	// As wide as they will be, since what is printed cannot be moved: the name is
	// that of a pod of a Deployment.
	p.widths = []int{0, wide("web-7d8f9c6b5d-x2v9p"), wide(string(corev1.PodReadyToStartContainers)), wide("terminated")}
	if namespaces {
		p.widths = append([]int{0}, p.widths...)
	}
	return p
}

// note says on stderr how the watch goes.
func (p *podLines) note(text string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	fmt.Fprintln(p.errOut, printable(oneLine(text)))
}

func (p *podLines) print(t podwatch.Transition) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.asJSON {
		return json.NewEncoder(p.out).Encode(t)
	}
	line := &table{header: []string{"TIME", "POD", "WHAT", "STATE", "WHY"}, rows: [][]cell{p.cells(t)}, uncut: 2}
	if p.namespaces {
		line.header, line.uncut = append([]string{"NAMESPACE"}, line.header...), 3
	}
	line.widths, line.bare = p.widths, p.header
	if err := line.writeTo(p.out, p.screen); err != nil {
		return err
	}
	p.header, p.widths = true, line.atLeast()
	p.widths[len(p.widths)-1] = 0 // the last column has no other beside it
	return nil
}

func (p *podLines) cells(t podwatch.Transition) []cell {
	state, h := stateOfPod(t)
	cells := []cell{{clockOf(t, p.local), plain}, {t.Pod, plain}, {whatOfPod(t), plain}, {state, h}, {whyOfPod(t), plain}}
	if p.namespaces {
		cells = append([]cell{{t.Namespace, plain}}, cells...)
	}
	return cells
}

// clockOf is when something happened, with the day if that is another than when
// it was read.
func clockOf(t podwatch.Transition, in *time.Location) string {
	seen := t.Seen.In(in)
	if t.Time.IsZero() {
		return "~" + seen.Format(time.TimeOnly)
	}
	at := t.Time.In(in)
	if daysBetween(seen, at) != 0 {
		return at.Format(time.DateTime)
	}
	return " " + at.Format(time.TimeOnly)
}

// whatOfPod names what it happened to.
func whatOfPod(t podwatch.Transition) string {
	switch t.Kind {
	case podwatch.Condition:
		return t.Name
	case podwatch.Container:
		return "container " + t.Name
	default:
		return string(t.Kind)
	}
}

// stateOfPod is what it is now.
func stateOfPod(t podwatch.Transition) (string, hue) {
	state, h := t.To, plain
	if state == "" && (t.Kind == podwatch.Condition || t.Kind == podwatch.Container) {
		state = "gone"
	}
	switch {
	case t.Kind == podwatch.Phase && t.To == "Failed", t.Kind == podwatch.Container && t.To == podwatch.Terminated && t.Reason != "Completed":
		h = red
	case t.Kind == podwatch.Condition && t.To == "True", t.Kind == podwatch.Phase && t.To == "Running":
		h = green
	case t.Kind == podwatch.Condition, t.To == podwatch.Waiting:
		h = yellow
	}
	if t.Again {
		state += " again"
	}
	return state, h
}

// whyOfPod is why, as far as the cluster says.
func whyOfPod(t podwatch.Transition) string {
	why := reasonAndMessage(t.Reason, t.Message)
	switch {
	case t.Kind == podwatch.Condition && t.Name == "PodScheduled" && t.To == "True" && why == "":
		why = "on " + t.Node
	case t.Kind == podwatch.Container && t.Restarts > 0 && t.To == podwatch.Running:
		why = plural(int(t.Restarts), "restart")
	}
	return why
}

// reasonAndMessage joins what the cluster says about something.
func reasonAndMessage(reason, message string) string {
	if reason == "" || message == "" {
		return reason + message
	}
	return reason + ": " + message
}
