// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
	"tidekeeper.dev/tidekeeper/internal/nodepool"
)

func (a *app) describePoolCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "describe NAME",
		Short: "One pool: its members with their levels, what is applied, events",
		Long: `describe shows a pool, what it puts on its nodes, each of these with its own
water level and what it lacks, and the recent events.`,
		Example:           `  kubectl tide pools describe worker`,
		Args:              oneName,
		ValidArgsFunction: a.names(func() client.ObjectList { return &tidekeeperv1.NodePoolList{} }, false),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := a.client()
			if err != nil {
				return err
			}
			facts, err := a.gatherPool(cmd.Context(), c, args[0])
			if err != nil {
				return err
			}
			return describePool(a.out, facts, a.now(), a.screen)
		},
	}
}

// poolFacts are what describe shows.
type poolFacts struct {
	pool     *tidekeeperv1.NodePool
	selector string
	members  []corev1.Node
	// pods by node; nil if they may not be read.
	pods   map[string][]*corev1.Pod
	events []corev1.Event
}

// gatherPool reads what describe shows. Pods and events may be out of bounds
// for whoever asks, and are then left out.
func (a *app) gatherPool(ctx context.Context, c client.Client, name string) (poolFacts, error) {
	f := poolFacts{pool: &tidekeeperv1.NodePool{}}
	if err := c.Get(ctx, client.ObjectKey{Name: name}, f.pool); err != nil {
		return f, aboutKind(err, poolKind, "", name)
	}
	selector, err := nodepool.Selector(f.pool)
	if err != nil {
		return f, err
	}
	f.selector = selector.String()
	nodes := &corev1.NodeList{}
	if err := c.List(ctx, nodes, fromCache(), client.MatchingLabelsSelector{Selector: selector}); err != nil {
		return f, err
	}
	f.members = nodes.Items

	names := make([]string, len(f.members))
	for i := range f.members {
		names[i] = f.members[i].Name
	}
	pods, err := podsOf(ctx, c, names)
	switch {
	case apierrors.IsForbidden(err):
		fmt.Fprintln(a.errOut, "the nodes' levels are left out: "+oneLine(err.Error()))
	case err != nil:
		return f, err
	default:
		f.pods = map[string][]*corev1.Pod{}
		for i := range pods {
			f.pods[pods[i].Spec.NodeName] = append(f.pods[pods[i].Spec.NodeName], &pods[i])
		}
	}

	events := &corev1.EventList{}
	about := client.MatchingFields{"involvedObject.kind": poolKind, "involvedObject.name": name}
	if err := c.List(ctx, events, client.InNamespace(metav1.NamespaceDefault), about); apierrors.IsForbidden(err) {
		fmt.Fprintln(a.errOut, "events are left out: "+oneLine(err.Error()))
	} else if err != nil {
		return f, err
	}
	f.events = events.Items
	return f, nil
}

// describePool prints a pool for people.
func describePool(out io.Writer, f poolFacts, now time.Time, s screen) error {
	p := f.pool
	status, h, message := poolStatus(p)
	fact := func(name, text string) { fmt.Fprintf(out, "%-13s%s\n", name, text) }
	fact("Name:", p.Name)
	fact("Status:", s.paint(h, status)+", "+printable(message))
	fact("Members:", "nodes with "+printable(f.selector))
	fact("Nodes:", fmt.Sprintf("%d of %d ready", p.Status.ReadyNodes, p.Status.NodeCount))
	for i, name := range slices.Sorted(maps.Keys(p.Status.RequestedPercent)) {
		c := level(p.Status.RequestedPercent[name], true, s)
		fact(first(i, "Requested:"), fmt.Sprintf("%-18s %s   %s", name, s.paint(c.hue, fmt.Sprintf("%4s", c.text)), amount(p, name)))
	}
	for i, text := range applied(p) {
		fact(first(i, "Applied:"), printable(text))
	}
	if c := meta.FindStatusCondition(p.Status.Conditions, "Conflicted"); c != nil && c.Status == metav1.ConditionTrue {
		fact("Conflict:", s.paint(red, printable(c.Message)))
	}

	fmt.Fprintln(out)
	if len(f.members) == 0 {
		fmt.Fprintln(out, "No nodes.")
	} else if err := membersTable(f, s).writeTo(out, s); err != nil {
		return err
	}
	fmt.Fprintln(out)
	if len(f.events) == 0 {
		fmt.Fprintln(out, "No recent events.")
		return nil
	}
	return eventsTable(f.events, now).writeTo(out, s)
}

// first is the name of a fact in its first line.
func first(i int, name string) string {
	if i > 0 {
		return ""
	}
	return name
}

// applied says what a pool puts on its nodes, and beside them.
func applied(p *tidekeeperv1.NodePool) []string {
	var texts []string
	for _, key := range slices.Sorted(maps.Keys(p.Spec.Labels)) {
		texts = append(texts, fmt.Sprintf("label %s=%s", key, p.Spec.Labels[key]))
	}
	for _, key := range slices.Sorted(maps.Keys(p.Spec.Annotations)) {
		texts = append(texts, fmt.Sprintf("annotation %s=%s", key, p.Spec.Annotations[key]))
	}
	for _, t := range p.Spec.Taints {
		texts = append(texts, "taint "+taintText(t))
	}
	if p.Spec.Handler != "" {
		texts = append(texts, fmt.Sprintf("RuntimeClass %s%s, handler %s", tidekeeperv1.RuntimeClassPrefix, p.Name, p.Spec.Handler))
	}
	if len(texts) == 0 {
		texts = []string{"nothing"}
	}
	return texts
}

func taintText(t tidekeeperv1.Taint) string {
	if t.Value == "" {
		return fmt.Sprintf("%s:%s", t.Key, t.Effect)
	}
	return fmt.Sprintf("%s=%s:%s", t.Key, t.Value, t.Effect)
}

// lacks names what the spec asks for and a node does not have.
func lacks(p *tidekeeperv1.NodePool, node *corev1.Node) []string {
	var keys []string
	for key, value := range p.Spec.Labels {
		if has, ok := node.Labels[key]; !ok || has != string(value) {
			keys = append(keys, "label "+key)
		}
	}
	for key, value := range p.Spec.Annotations {
		if has, ok := node.Annotations[key]; !ok || has != string(value) {
			keys = append(keys, "annotation "+key)
		}
	}
	for _, t := range p.Spec.Taints {
		want := func(has corev1.Taint) bool {
			return has.Key == t.Key && has.Value == string(t.Value) && has.Effect == t.Effect
		}
		if !slices.ContainsFunc(node.Spec.Taints, want) {
			keys = append(keys, "taint "+t.Key)
		}
	}
	slices.Sort(keys)
	return keys
}

// membersTable are the nodes, the fullest first.
func membersTable(f poolFacts, s screen) *table {
	t := &table{header: []string{"NODE", "READY", "CPU", "MEMORY", "PODS", "LACKS"}}
	members := slices.Clone(f.members)
	levelOf := map[string]map[corev1.ResourceName]int32{}
	fullest := func(name string) (most int32) {
		for _, percent := range levelOf[name] {
			most = max(most, percent)
		}
		return most
	}
	if f.pods != nil {
		for i := range members {
			_, levelOf[members[i].Name] = nodepool.Level(&members[i], f.pods[members[i].Name])
		}
	}
	slices.SortStableFunc(members, func(a, b corev1.Node) int {
		if d := fullest(b.Name) - fullest(a.Name); d != 0 {
			return int(d)
		}
		return strings.Compare(a.Name, b.Name)
	})
	for i := range members {
		node := &members[i]
		ready := cell{"no", red}
		for _, c := range node.Status.Conditions {
			if c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue {
				ready = cell{"yes", plain}
			}
		}
		row := []cell{{node.Name, plain}, ready}
		for _, name := range levels {
			percent, known := levelOf[node.Name][name]
			row = append(row, level(percent, known, s))
		}
		missing := cell{"-", plain}
		if keys := lacks(f.pool, node); len(keys) > 0 {
			missing = cell{strings.Join(keys, ", "), yellow}
		}
		t.rows = append(t.rows, append(row, missing))
	}
	return t
}

// mostEvents is how many events describe shows.
const mostEvents = 10

// eventsTable are the last events, the latest last.
func eventsTable(events []corev1.Event, now time.Time) *table {
	sorted := slices.Clone(events)
	slices.SortStableFunc(sorted, func(a, b corev1.Event) int { return lastSeen(&a).Compare(lastSeen(&b)) })
	t := &table{header: []string{"LAST", "TYPE", "EVENT", "MESSAGE"}}
	for _, e := range sorted[max(0, len(sorted)-mostEvents):] {
		h := plain
		if e.Type == corev1.EventTypeWarning {
			h = yellow
		}
		t.rows = append(t.rows, []cell{{ago(lastSeen(&e), now), plain}, {e.Type, h}, {e.Reason, plain}, {e.Message, plain}})
	}
	return t
}

// lastSeen is when an event last happened.
func lastSeen(e *corev1.Event) time.Time {
	switch {
	case e.Series != nil:
		return e.Series.LastObservedTime.Time
	case !e.LastTimestamp.IsZero():
		return e.LastTimestamp.Time
	case !e.EventTime.IsZero():
		return e.EventTime.Time
	default:
		return e.CreationTimestamp.Time
	}
}
