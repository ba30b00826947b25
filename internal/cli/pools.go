// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/client"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
)

const poolKind = "NodePool"

func (a *app) poolsCommand() *cobra.Command {
	var selector string
	var follow bool
	output := newOutput("json|yaml|name|wide")
	cmd := &cobra.Command{
		Use:     "pools",
		Aliases: []string{"pool", "nodepools", "nodepool"},
		Short:   "Node pools: the water level, nodes, conflicts",
		Long: `pools lists the node pools: how each is, how many of its nodes are ready, and how
much of each resource the pods on them request, in percent of what they have.
On a terminal that is drawn as bars.`,
		Example: `  kubectl tide pools
  kubectl tide pools -w
  kubectl tide pools -o json | jq '.items[].status.requestedPercent'`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			printer, err := output.printer("wide")
			if err != nil {
				return err
			}
			if follow && printer != nil {
				return fmt.Errorf("-w goes with a table: kubectl get nodepools -w -o %s follows the objects", *output.flags.OutputFormat)
			}
			c, err := a.client()
			if err != nil {
				return err
			}
			list, err := listPools(cmd.Context(), c, selector)
			if err != nil {
				return err
			}
			if printer != nil {
				return output.print(printer, list, a.out)
			}
			wide := output.is("wide")
			t := poolsTable(list.Items, wide, a.now(), a.screen)
			if len(list.Items) == 0 {
				a.sayNothingFound("node pools", true, selector != "")
			} else if err := t.writeTo(a.out, a.screen); err != nil {
				return err
			}
			if !follow {
				return nil
			}
			chosen, err := labels.Parse(selector)
			if err != nil {
				return err
			}
			f := &follower{
				app: a, kind: poolKind, list: list, empty: func() client.ObjectList { return &tidekeeperv1.NodePoolList{} },
				options: client.ListOptions{LabelSelector: chosen}, widths: t.atLeast(),
				table: func(o client.Object, now time.Time) *table {
					return poolsTable([]tidekeeperv1.NodePool{*o.(*tidekeeperv1.NodePool)}, wide, now, a.screen)
				},
			}
			return f.follow(cmd.Context(), c)
		},
	}
	cmd.Flags().StringVarP(&selector, "selector", "l", "", "only those with these labels, such as team=web")
	cmd.Flags().BoolVarP(&follow, "watch", "w", false, "go on, with a line for each change")
	output.addTo(cmd)
	cmd.AddCommand(a.describePoolCommand(), a.planPoolsCommand())
	return cmd
}

func listPools(ctx context.Context, c client.Client, selector string) (*tidekeeperv1.NodePoolList, error) {
	chosen, err := labels.Parse(selector)
	if err != nil {
		return nil, fmt.Errorf("--selector: %w", err)
	}
	list := &tidekeeperv1.NodePoolList{}
	if err := c.List(ctx, list, client.MatchingLabelsSelector{Selector: chosen}); err != nil {
		return nil, aboutKind(err, poolKind, "", "")
	}
	list.SetGroupVersionKind(tidekeeperv1.SchemeGroupVersion.WithKind(poolKind + "List"))
	for i := range list.Items {
		list.Items[i].SetGroupVersionKind(tidekeeperv1.SchemeGroupVersion.WithKind(poolKind))
	}
	return list, nil
}

// levels are the resources that every pool is shown with; those of its own,
// such as GPUs, are in describe and -o wide.
var levels = []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory, corev1.ResourcePods}

// levelWidth is how long a full bar is: on a narrow screen there is none, so
// that the numbers are seen.
func levelWidth(s screen) int {
	switch {
	case !s.terminal, s.width < 80:
		return 0
	case s.width < 96:
		return 5
	default:
		return 10
	}
}

// poolsTable is the list for people.
func poolsTable(items []tidekeeperv1.NodePool, wide bool, now time.Time, s screen) *table {
	t := &table{header: []string{"NAME", "STATUS", "READY", "CPU", "MEMORY", "PODS", "CONFLICTS", "AGE"}}
	if wide {
		t.header = append(t.header, "CPU-OF", "MEMORY-OF", "OTHER", "MESSAGE")
	}
	for i := range items {
		p := &items[i]
		status, statusHue, message := poolStatus(p)
		readyHue := plain
		if p.Status.ReadyNodes < p.Status.NodeCount {
			readyHue = yellow
		}
		row := []cell{{p.Name, plain}, {status, statusHue}, {fmt.Sprintf("%d/%d", p.Status.ReadyNodes, p.Status.NodeCount), readyHue}}
		for _, name := range levels {
			percent, known := p.Status.RequestedPercent[name]
			row = append(row, level(percent, known, s))
		}
		conflicts := cell{"-", plain}
		if c := meta.FindStatusCondition(p.Status.Conditions, "Conflicted"); c != nil && c.Status == "True" {
			conflicts = cell{"yes", red}
		}
		row = append(row, conflicts, cell{ago(p.CreationTimestamp.Time, now), plain})
		if wide {
			row = append(row, cell{amount(p, corev1.ResourceCPU), plain}, cell{amount(p, corev1.ResourceMemory), plain},
				cell{otherLevels(p), plain}, cell{message, plain})
		}
		t.rows = append(t.rows, row)
	}
	return t
}

// level is a share in percent, on a terminal with a bar.
func level(percent int32, known bool, s screen) cell {
	if !known {
		return cell{"-", plain}
	}
	text := fmt.Sprintf("%d%%", percent)
	h := plain
	switch {
	case percent >= 95:
		h = red
	case percent >= 80:
		h = yellow
	}
	if width := levelWidth(s); width > 0 {
		// On ground, so that an empty one is seen too.
		drawn := bar(float64(percent)/100, width)
		text = drawn + strings.Repeat("·", width-wide(drawn)) + fmt.Sprintf(" %4s", text)
	}
	return cell{text, h}
}

// amount is what is requested of what there is.
func amount(p *tidekeeperv1.NodePool, name corev1.ResourceName) string {
	of, ok := p.Status.Allocatable[name]
	if !ok {
		return "-"
	}
	requested := p.Status.Requested[name]
	return requested.String() + " of " + of.String()
}

// otherLevels are the levels of the resources that have no column.
func otherLevels(p *tidekeeperv1.NodePool) string {
	var texts []string
	for name, percent := range p.Status.RequestedPercent {
		if !slices.Contains(levels, name) {
			texts = append(texts, fmt.Sprintf("%s %d%%", name, percent))
		}
	}
	if len(texts) == 0 {
		return "-"
	}
	slices.Sort(texts)
	return strings.Join(texts, ", ")
}

// poolStatus is the reason of the condition Ready.
func poolStatus(p *tidekeeperv1.NodePool) (status string, h hue, message string) {
	ready := meta.FindStatusCondition(p.Status.Conditions, "Ready")
	switch {
	case ready == nil:
		return "Unknown", yellow, "no manager has looked at it yet"
	case ready.Reason == "Healthy":
		return ready.Reason, green, ready.Message
	case ready.Status == "True", ready.Reason == "Updating", ready.Reason == "Deleting":
		return ready.Reason, yellow, ready.Message
	default:
		return ready.Reason, red, ready.Message
	}
}
