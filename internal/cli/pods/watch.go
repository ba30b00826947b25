// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package pods

import (
	"context"
	"fmt"
	"reflect"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	"tidekeeper.dev/tidekeeper/internal/cli/cmdutil"
	"tidekeeper.dev/tidekeeper/internal/pods/podwatch"
	"tidekeeper.dev/tidekeeper/internal/term"
)

// watchOptions holds the flags and arguments of pods watch.
type watchOptions struct {
	*cmdutil.Env
	selection
	history bool
	events  bool
	format  string
}

func newWatchCommand(e *cmdutil.Env) *cobra.Command {
	o := &watchOptions{Env: e}
	cmd := &cobra.Command{
		Use:   "watch [POD...]",
		Short: "Follow pods: a line for each transition as it happens",
		Long: `watch prints a line for each transition of a pod: its phase, its conditions with
status and reason, the states of its containers, the events about it, and its deletion.
For pods that exist at the start it prints their state, with --history also the
transitions that led to it. A named pod need not exist yet.

A lost connection is reestablished. Transitions in the meantime are printed, each once,
as far as the timestamps of the pods show them. Times are the cluster's, in whole
seconds; ~ marks a transition without a time, and shows when it was read. It ends with
Ctrl-C or --request-timeout.`,
		Example: `  kubectl tide pods watch -l app=web -n shop
  kubectl tide pods watch web-0 web-1
  kubectl tide pods watch -A -o json | jq -r 'select(.name == "Ready") | [.pod, .to] | @tsv'`,
		ValidArgsFunction: e.Kubeconfig.CompleteNames(emptyList),
		RunE:              cmdutil.RunE(o),
	}
	o.addTo(cmd)
	cmd.Flags().BoolVar(&o.history, "history", false, "also print the past transitions of existing pods")
	cmd.Flags().BoolVar(&o.events, "events", true, "also print the events about the pods, such as Pulling and Started")
	cmd.Flags().VarP(cmdutil.FormatFlag{Format: &o.format, Formats: []string{"json"}, Shown: []reflect.Type{reflect.TypeFor[podwatch.Transition]()}}, "output", "o", "json: one object per line")
	_ = cmd.RegisterFlagCompletionFunc("output", cobra.FixedCompletions([]string{"json"}, cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

// Complete implements [cmdutil.Options].
func (o *watchOptions) Complete(_ *cobra.Command, args []string) error {
	return o.complete(o.Env, args)
}

// Validate implements [cmdutil.Options].
func (o *watchOptions) Validate() error {
	if o.format != "" && o.format != "json" {
		return fmt.Errorf("-o %s: write json, or leave it out", o.format)
	}
	return o.validate()
}

// Run implements [cmdutil.Options].
func (o *watchOptions) Run(ctx context.Context) error {
	config, err := o.Kubeconfig.Config()
	if err != nil {
		return err
	}
	if err := o.check(ctx, config); err != nil {
		return err
	}
	config, timeout := cmdutil.WithoutTimeout(config)
	core, err := podClient(config)
	if err != nil {
		return err
	}
	ctx, cancel := cmdutil.WatchContext(ctx, timeout)
	defer cancel()
	names := map[string]bool{}
	for _, name := range o.names {
		names[name] = true
	}
	lines := newPodLines(o.Env, o.namespace == "", o.format == "json")
	watcher := &podwatch.Watcher{
		Source:       cache.NewFilteredListWatchFromClient(core.RESTClient(), "pods", o.namespace, o.narrow),
		Names:        names,
		History:      o.history,
		OnTransition: lines.print,
		OnStart:      lines.began,
		OnLost: func(err error) {
			_, message := cmdutil.ExplainError(err)
			lines.report("Lost the connection: " + message + ". Trying again.")
		},
		OnRegained: func() { lines.report("Connected again.") },
		OnNoEvents: func(err error) {
			_, message := cmdutil.ExplainError(err)
			lines.report("Events are not shown: " + message + ".")
		},
		OnDropped: func(pod string, transitions int, err error) {
			lines.report(fmt.Sprintf("Dropped %s of pod %s, tried four times: %v", term.Plural(transitions, "transition"), pod, err))
		},
	}
	if o.events {
		watcher.Events = cache.NewFilteredListWatchFromClient(core.RESTClient(), "events", o.namespace, o.narrowEvents)
	}
	return cmdutil.WatchEnded(watcher.Run(ctx))
}

// narrow limits a list or watch to the pods with the selected labels or, if the user named a single
// pod, to that pod.
func (o *watchOptions) narrow(options *metav1.ListOptions) {
	options.LabelSelector = o.selector.String()
	if len(o.names) == 1 {
		options.FieldSelector = fields.OneTermEqualSelector(metav1.ObjectNameField, o.names[0]).String()
	}
}

// narrowEvents limits a list or watch to events about pods, or about a single named pod.
func (o *watchOptions) narrowEvents(options *metav1.ListOptions) {
	about := fields.Set{"involvedObject.kind": "Pod"}
	if len(o.names) == 1 {
		about["involvedObject.name"] = o.names[0]
	}
	options.FieldSelector = about.AsSelector().String()
}

// check sends a list request before the watch starts, to detect errors that retries would not
// resolve, such as a missing permission.
func (o *watchOptions) check(ctx context.Context, config *rest.Config) error {
	core, err := podClient(config)
	if err != nil {
		return err
	}
	first := metav1.ListOptions{Limit: 1}
	o.narrow(&first)
	if pods, err := core.Pods(o.namespace).List(ctx, first); err != nil || len(pods.Items) > 0 {
		return err
	}
	c, err := cmdutil.ClientFor(config)
	if err != nil {
		return err
	}
	return cmdutil.NamespaceExists(ctx, c, o.namespace)
}

// podClient returns a client that uses protobuf, which is efficient for many pods.
func podClient(config *rest.Config) (*corev1client.CoreV1Client, error) {
	config = rest.CopyConfig(config)
	config.ContentType, config.AcceptContentTypes = runtime.ContentTypeProtobuf, runtime.ContentTypeProtobuf+","+runtime.ContentTypeJSON
	return corev1client.NewForConfig(config)
}
