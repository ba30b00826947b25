// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package pools

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/cli-runtime/pkg/genericclioptions"

	"tidekeeper.dev/tidekeeper/internal/capacity"
	"tidekeeper.dev/tidekeeper/internal/cli/cmdutil"
	"tidekeeper.dev/tidekeeper/internal/resources"
	"tidekeeper.dev/tidekeeper/internal/term"
	"tidekeeper.dev/tidekeeper/internal/view"
)

// amountFlags lists the flags that set the resource requests of the pod to copy.
var amountFlags = [...]struct {
	name, usage string
	resource    corev1.ResourceName
}{
	{"cpu", "CPU that a copy requests, such as 500m", corev1.ResourceCPU},
	{"memory", "memory that a copy requests, such as 4Gi", corev1.ResourceMemory},
	{"gpu", "nvidia.com/gpu that a copy requests", "nvidia.com/gpu"},
}

// fitOptions holds the flags and arguments of pools fit.
type fitOptions struct {
	roomOptions
	amounts [len(amountFlags)]string
	more    []string
	like    string
	copies  int64
	files   genericclioptions.FileNameFlags
	// priorityClass is the name of the copies' PriorityClass, if the user changes it.
	priorityClass string

	requests corev1.ResourceList
}

func newFitCommand(e *cmdutil.Env) *cobra.Command {
	o := &fitOptions{
		roomOptions: roomOptions{Env: e},
		files:       genericclioptions.FileNameFlags{Usage: "a file with a Pod or a workload, or - for stdin", Filenames: &[]string{}},
	}
	cmd := &cobra.Command{
		Use:   "fit [POOL...] (--cpu N --memory N | --like TYPE/NAME | -f FILE)",
		Short: "How many copies of a pod fit in each pool now, and why not more",
		Long: `fit shows how many copies of a pod each pool has room for now: the limiting resource, the
reasons why other nodes take none, and how many copies fit on an empty node. For a pool
with a spec.nodeTemplate it shows how many fit on a new node, and with --copies how many new
nodes are needed.

A pod given by --cpu, --memory, --gpu and --request tolerates the taints of each pool, as
a pod with the pool's RuntimeClass does. The pod of a workload or a file has its own
tolerations, selectors and node affinity; the API server sets its defaults in a dry run,
which requires the right to create pods.

Affinity between pods, topology spread, host ports, and zones and attach limits of volumes
are evaluated, and so are devices of ResourceClaims unless they are partitionable or have
consumable capacity. Where the number is not certain, the reason is named, and it is "at
most". Nothing is reserved: pods scheduled in the meantime take room.

Copies of a StatefulSet bring a new volume for each claim template, other copies share their
claims. Volumes need the right to list PersistentVolumeClaims, PersistentVolumes,
StorageClasses, CSIDrivers, CSINodes and VolumeAttachments; devices need that to list
DeviceClasses, ResourceSlices, ResourceClaims, ResourceClaimTemplates and DeviceTaintRules.

A copy that fits on no node may have a priority above that of running pods, by its
PriorityClass, by --priority-class or by the cluster's default. Then it is named on which node
the scheduler would place the first copy by preemption, which pods it would evict, and which
PodDisruptionBudgets that violates. Preemption does not count as room.`,
		Example: `  kubectl tide pools fit --cpu 3 --memory 4Gi
  kubectl tide pools fit gpu --cpu 8 --memory 32Gi --gpu 1
  kubectl tide pools fit --like deployment/web -n shop
  kubectl tide pools fit --like deployment/web -n shop --copies 30
  kubectl tide pools fit --like deployment/web -n shop --priority-class high
  kubectl tide pools fit worker -f pod.yaml -o json`,
		ValidArgsFunction: e.Kubeconfig.CompleteNames(emptyList),
		RunE:              cmdutil.RunE(o),
	}
	for i, flag := range amountFlags {
		cmd.Flags().StringVar(&o.amounts[i], flag.name, "", flag.usage)
	}
	cmd.Flags().StringSliceVar(&o.more, "request", nil, "other resources that a copy requests, such as ephemeral-storage=10Gi")
	cmd.Flags().StringVar(&o.like, "like", "", "the workload or pod to copy, such as deployment/web")
	o.files.AddFlags(cmd.Flags())
	cmd.Flags().Int64Var(&o.copies, "copies", 0, "show how many new nodes this number of copies needs in pools with a spec.nodeTemplate")
	cmd.Flags().StringVar(&o.priorityClass, "priority-class", "", "the PriorityClass of the copies, instead of their own")
	o.output.Shows([]view.PoolFit{}).AddTo(cmd)
	return cmd
}

// Complete implements [cmdutil.Options].
func (o *fitOptions) Complete(cmd *cobra.Command, args []string) error {
	if err := o.roomOptions.Complete(cmd, args); err != nil {
		return err
	}
	o.requests = corev1.ResourceList{}
	add := func(flag string, name corev1.ResourceName, text string) error {
		amount, err := resource.ParseQuantity(text)
		if err != nil || amount.Sign() < 0 {
			return fmt.Errorf("%s %s: write an amount such as 2, 500m or 4Gi", flag, strconv.Quote(text))
		}
		if _, twice := o.requests[name]; twice {
			return fmt.Errorf("%s %s: %s is requested already", flag, strconv.Quote(text), name)
		}
		o.requests[name] = amount
		return nil
	}
	for i, flag := range amountFlags {
		if text := o.amounts[i]; text != "" {
			if err := add("--"+flag.name, flag.resource, text); err != nil {
				return err
			}
		}
	}
	for _, text := range o.more {
		name, amount, found := strings.Cut(text, "=")
		if !found || name == "" {
			return fmt.Errorf("--request %s: write RESOURCE=AMOUNT, such as ephemeral-storage=10Gi", text)
		}
		if err := add("--request", corev1.ResourceName(name), amount); err != nil {
			return err
		}
	}
	return nil
}

// Validate implements [cmdutil.Options].
func (o *fitOptions) Validate() error {
	ways := 0
	for _, used := range []bool{len(o.requests) > 0, o.like != "", len(*o.files.Filenames) > 0} {
		if used {
			ways++
		}
	}
	switch {
	case o.copies < 0:
		return fmt.Errorf("--copies %d: write a number of copies", o.copies)
	case ways == 0:
		return errors.New("describe the pod: --cpu and --memory, --like deployment/NAME, or -f FILE")
	case ways > 1:
		return errors.New("--like, -f, and the amounts --cpu, --memory, --gpu and --request cannot be combined: write one of these")
	}
	return o.roomOptions.Validate()
}

// Run implements [cmdutil.Options].
func (o *fitOptions) Run(ctx context.Context) error {
	c, err := o.Kubeconfig.Client()
	if err != nil {
		return err
	}
	if err := checkPriorityClass(ctx, c, o.priorityClass); err != nil {
		return err
	}
	pod, lacks, err := o.pod(ctx, c)
	if err != nil {
		return err
	}
	r, err := o.read(ctx, c)
	if err != nil {
		return err
	}
	if err := readDaemonSets(ctx, c, r); err != nil {
		return err
	}
	if err := readNeeds(ctx, c, r, []*corev1.Pod{pod}); err != nil {
		return err
	}
	fits := r.Fit(pod, len(o.requests) > 0, o.copies)
	elsewhere, err := o.preempt(ctx, c, r, pod, fits)
	if err != nil {
		return err
	}
	if elsewhere != nil {
		o.Console.Note("Not in these pools: " + view.PreemptionText(elsewhere, ""))
	}
	if lacks != "" {
		o.Console.Note(lacks)
		addNotAdmitted(fits)
	}
	if done, err := o.output.Print(o.Console.Out, fits); done {
		return err
	}
	if len(fits) == 0 {
		o.Console.NothingFound("node pools", "", false)
		return nil
	}
	if o.copies > 0 && !r.HasTemplate() {
		o.Console.Note("--copies counts new nodes, and none of these pools has a spec.nodeTemplate: kubectl tide pools node-template --help")
	}
	return o.print(pod, fits)
}

// print prints the fits as a table, with the requests of a copy above and the preemptions below.
func (o *fitOptions) print(pod *corev1.Pod, fits []view.PoolFit) error {
	fmt.Fprintf(o.Console.Out, "A copy requests %s.\n", term.Printable(resources.TextOfRequests(capacity.RequestsOf(pod))))
	var uncertain []string
	for _, f := range fits {
		uncertain = append(uncertain, f.AtMost...)
	}
	if slices.Sort(uncertain); len(uncertain) > 0 {
		fmt.Fprintf(o.Console.Out, "Some numbers are upper bounds because of: %s.\n", strings.Join(slices.Compact(uncertain), ", "))
	}
	fmt.Fprintln(o.Console.Out)
	if err := fitTable(fits).WriteTo(o.Console.Out, o.Console.Screen); err != nil {
		return err
	}
	o.printLines(preemptionLines(fits))
	return nil
}

func fitTable(fits []view.PoolFit) *term.Table {
	t := &term.Table{Columns: []term.Column{
		{Header: "POOL", Name: true}, {Header: "COPIES"}, {Header: "NODES"}, {Header: "LIMITED BY", Text: 12}, {Header: "ON AN EMPTY NODE", Drop: 1}, {Header: "OTHER NODES", Text: 20},
	}}
	hasNew := slices.ContainsFunc(fits, func(f view.PoolFit) bool { return f.NewNode != nil })
	hasNeeded := slices.ContainsFunc(fits, func(f view.PoolFit) bool { return f.NewNode != nil && f.NewNode.Needed != nil })
	if hasNew {
		t.Columns = append(t.Columns, term.Column{Header: "ON A NEW NODE", Text: 12})
	}
	if hasNeeded {
		t.Columns = append(t.Columns, term.Column{Header: "NEW NODES"})
	}
	for _, f := range fits {
		cell := term.Text(f.CopiesText())
		if f.Copies == 0 {
			cell.Color = term.Yellow
		}
		t.Rows = append(t.Rows, []term.Cell{
			term.Text(f.Pool), cell, term.Text(fmt.Sprintf("%d/%d", f.Nodes, f.Members)), term.Text(view.CountsText(f.LimitedBy)),
			term.Text(strconv.FormatInt(f.OnEmptyNode, 10)), term.Text(view.CountsText(f.Refused)),
		})
		row := &t.Rows[len(t.Rows)-1]
		if hasNew {
			*row = append(*row, term.Text(f.NewNode.CopiesText()))
		}
		if hasNeeded {
			*row = append(*row, term.Text(f.NewNode.NeededText()))
		}
	}
	return t
}
