// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package pools

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"

	"tidekeeper.dev/tidekeeper/internal/capacity"
	"tidekeeper.dev/tidekeeper/internal/cli/cmdutil"
	"tidekeeper.dev/tidekeeper/internal/cli/term"
	"tidekeeper.dev/tidekeeper/internal/nodepool/resources"
	"tidekeeper.dev/tidekeeper/internal/pods"
)

// pendingOptions are those of pools pending.
type pendingOptions struct{ roomOptions }

// pendingGroup is pending pods that are alike, and what each pool could do for them.
type pendingGroup struct {
	Namespace string              `json:"namespace"`
	Pods      []string            `json:"pods"`
	Workloads []string            `json:"workloads"`
	Requests  corev1.ResourceList `json:"requests"`
	Pools     []pendingIn         `json:"pools"`
}

// The answers of a pool for pending pods.
const (
	// fitsNow: the pool has room for a copy.
	fitsNow = "FitsNow"
	// fitsEmpty: an empty node of the pool would have room, but none has now.
	fitsEmpty = "FitsAnEmptyNode"
	// neverFits: no node of the pool takes one, whatever runs there.
	neverFits = "Never"
)

// pendingIn is the answer of a pool.
type pendingIn struct {
	Answer  string `json:"answer"` // FitsNow, FitsAnEmptyNode or Never
	poolFit `json:",inline"`
}

func newPendingCommand(e *cmdutil.Env) *cobra.Command {
	o := &pendingOptions{roomOptions{Env: e}}
	cmd := &cobra.Command{
		Use:   "pending [POOL...]",
		Short: "Pending pods, and which pool could take them: now, on an empty node, or never",
		Long: `pending groups the pods that no node was found for by what they ask for, and shows for
each group what each pool could do: take copies now, take them on an empty node of its
kind, or never, and why. The groups add up to all pending pods of the cluster.

A pod that fits now and stays pending waits for something that is not evaluated here,
such as a volume: kubectl describe pod shows the scheduler's last message.`,
		Example: `  kubectl tide pools pending
  kubectl tide pools pending gpu -o json | jq '.[].pods'`,
		ValidArgsFunction: e.CompleteNames(emptyList),
		RunE:              cmdutil.RunE(o),
	}
	o.output.AddTo(cmd)
	return cmd
}

// Run is part of [cmdutil.Options].
func (o *pendingOptions) Run(ctx context.Context) error {
	c, err := o.Client()
	if err != nil {
		return err
	}
	r, err := o.read(ctx, c)
	if err != nil {
		return err
	}
	groups := []pendingGroup{}
	for _, g := range r.cluster.Pending() {
		groups = append(groups, r.pendingGroup(g))
	}
	if done, err := o.output.Print(o.Out, groups); done {
		return err
	}
	if len(groups) == 0 {
		o.Note("No pod is pending.")
		return nil
	}
	return pendingTable(groups).WriteTo(o.Out, o.Screen)
}

// pendingGroup returns what the pools could do for a group.
func (r *room) pendingGroup(g capacity.Group) pendingGroup {
	first := g.Pods[0]
	shown := pendingGroup{Namespace: first.Namespace, Requests: capacity.RequestsOf(first), Pools: []pendingIn{}}
	for _, pod := range g.Pods {
		shown.Pods = append(shown.Pods, pod.Name)
		if workload := pods.WorkloadName(pod); !slices.Contains(shown.Workloads, workload) {
			shown.Workloads = append(shown.Workloads, workload)
		}
	}
	for _, pool := range r.pools {
		in := pendingIn{Answer: neverFits, poolFit: poolFit{pool.Name, len(pool.members), r.cluster.Fit(pool.members, first)}}
		switch {
		case in.Copies > 0:
			in.Answer = fitsNow
		case in.OnEmptyNode > 0:
			in.Answer = fitsEmpty
		}
		shown.Pools = append(shown.Pools, in)
	}
	return shown
}

func pendingTable(groups []pendingGroup) *term.Table {
	t := &term.Table{Columns: []term.Column{
		{Header: "PODS"}, {Header: "NAMESPACE", Name: true, Drop: 2}, {Header: "WORKLOAD", Name: true}, {Header: "EACH REQUESTS", Drop: 1}, {Header: "POOL", Name: true}, {Header: "FITS"}, {Header: "WHY NOT", Text: 12},
	}}
	for _, g := range groups {
		workload := g.Workloads[0]
		if more := len(g.Workloads) - 1; more > 0 {
			workload += fmt.Sprintf(" and %d more", more)
		}
		head := []term.Cell{term.Text(strconv.Itoa(len(g.Pods))), term.Text(g.Namespace), term.Text(workload), term.Text(resources.Text(g.Requests))}
		if len(g.Pools) == 0 {
			t.Rows = append(t.Rows, append(head, term.Text("-"), term.Text("-"), term.Text("no pool has nodes")))
		}
		for i, in := range g.Pools {
			if i > 0 {
				head = []term.Cell{term.Text(""), term.Text(""), term.Text(""), term.Text("")}
			}
			t.Rows = append(t.Rows, append(slices.Clone(head), term.Text(in.Pool), answerCell(in), term.Text(countsText(in.Refused))))
		}
	}
	return t
}

// answerCell says whether and when a pool takes copies.
func answerCell(in pendingIn) term.Cell {
	switch in.Answer {
	case fitsNow:
		text := fmt.Sprintf("%d now", in.Copies)
		if len(in.AtMost) > 0 {
			text = "at most " + text + " (not evaluated: " + strings.Join(in.AtMost, ", ") + ")"
		}
		return term.Painted(term.Green, text)
	case fitsEmpty:
		return term.Painted(term.Yellow, "on an empty node")
	default:
		return term.Text("never")
	}
}
