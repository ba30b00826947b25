// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"tidekeeper.dev/tidekeeper/sandbox/internal/condition"
	"tidekeeper.dev/tidekeeper/sandbox/internal/explore/lab"
	"tidekeeper.dev/tidekeeper/sandbox/internal/explore/workload"
	"tidekeeper.dev/tidekeeper/sandbox/internal/fuzz"
	"tidekeeper.dev/tidekeeper/sandbox/internal/results"
)

// fuzzFlags holds the values of the flags of `sandbox fuzz`.
type fuzzFlags struct {
	exploreFlags
	install, ignore []string
	object, ready   string
	nodes           int
	faults, busy    bool
}

func newFuzz(labs *lab.Labs) *cobra.Command {
	f := fuzzFlags{exploreFlags: exploreFlags{labs: labs}}
	cmd := &cobra.Command{
		Use:   "fuzz --install FILE --object FILE [flags] -- PROGRAM [ARGUMENTS...]",
		Short: "Edit a custom resource in all ways that its schema suggests, and find what its operator does not survive",
		Long: `Edit a custom resource in all ways that its schema suggests, and find what its operator
does not survive.

The operator is any program, unchanged, in any language: it finds the API server by
$KUBECONFIG, by an argument in which $KUBECONFIG is replaced, or as in a pod. For each property of the
object, the schema in its CustomResourceDefinition suggests values: plausible values, values at the
limits and beyond, wrong, empty, absent and hostile values. Properties are edited one at a time, and
then several at once. Either the API server refuses an edit, and then nothing may change; or the
operator must become quiet after the edit, must return to the state before when the edit is undone,
and must reach the same state as for a new object. It must not panic, end, or loop. With --faults, an
edit that it has survived is made again with a fault in the operator's response to it: a crash before
or after a write, a lost answer, a refused request. 'sandbox replay' plays a finding again.

It ends with exit code 0 without a finding, 2 with a finding, and 1 if it could not be played. The
results are kept in --dir: started again, it continues. If the program, the installed manifests, the
object, a flag that judges or the sandbox has changed since, all edits are played again, those with a
finding first.`,
		Example: `  # Ten minutes.
  sandbox fuzz --install config/crd --object sample.yaml --for 10m -- ./my-operator

  # With faults at what the operator writes.
  sandbox fuzz --install config/crd --object sample.yaml --faults --for 10m -- ./my-operator

  # Only one property; what is found again, with the operator fixed.
  sandbox fuzz --install config/crd --object sample.yaml --only spec.replicas -- ./my-operator
  sandbox replay fuzz/finding-1a2b3c4d.yaml -- ./my-operator`,
		Args: atLeastOne("a program, after --"),
		RunE: func(cmd *cobra.Command, args []string) error { return runFuzz(cmd, f, args) },
	}
	flags := cmd.Flags()
	flags.SortFlags = false
	flags.SetInterspersed(false)
	flags.StringArrayVar(&f.install, "install", nil, "a file or directory of manifests to install, the CustomResourceDefinition among them (required without --workload); may be given several times")
	flags.StringVar(&f.workload, "workload", "", "a workload of explore: all is used but its invariants and its steps, which it need not have")
	flags.StringVar(&f.object, "object", "", "the file with the object to edit (required); objects before it in the file are created first")
	flags.StringVar(&f.ready, "ready", "", "an expression in CEL that the object meets once the operator is done, such as 'object.status.phase == \"Running\"'; without it, the operator is done when nothing changes for --quiet")
	flags.DurationVar(&f.runFor, "for", 0, "how long to play, most promising edits first (default until all are played)")
	flags.StringArrayVar(&f.only, "only", nil, "play only edits with this in their name, such as spec.replicas or 'negative'; may be given several times")
	flags.BoolVar(&f.faults, "faults", false, "play each edit that was survived again with faults at what the operator writes then, as explore does: the four most promising ones")
	flags.BoolVar(&f.busy, "busy", false, "make each edit that was survived once more while the operator is busy with a new object, and take it back at once")
	flags.StringVar(&f.shard, "shard", "", "I/N: play the I-th of N parts of the edits")
	flags.StringArrayVar(&f.ignore, "ignore", nil, "resources and fields that do not count: a resource like jobs.batch, or a field like 'deployments.apps metadata.annotations'; may be given several times")
	flags.StringVar(&f.dir, "dir", "fuzz", "the directory for the results")
	flags.StringVar(&f.html, "html", "", "write a report as a single HTML page to this file (default report.html in --dir)")
	flags.StringVar(&f.junit, "junit", "", "write a JUnit report to this file (default junit.xml in --dir)")
	flags.IntVar(&f.jobs, "jobs", sandboxes(1, 0), "number of sandboxes that play side by side; by default one for each processor, if there is 1 GiB of memory for each")
	flags.IntVar(&f.nodes, "nodes", 3, "how many simulated nodes there are")
	addFresh(cmd, &f.exploreFlags)
	addSettling(cmd, &f.exploreFlags)
	cmd.AddCommand(newReport("fuzz"))
	return cmd
}

// check returns an error if the flags name no manifests to install or no object to edit, or if the
// number of nodes is negative.
func (f fuzzFlags) check() error {
	switch {
	case len(f.install) == 0 && f.workload == "":
		return errors.New("--install is missing: name the file of the CustomResourceDefinition, and of all else that the operator needs; or --workload, a workload of explore that installs them")
	case f.object == "":
		return errors.New("--object is missing: name the file of the object to edit")
	case f.nodes < 0:
		return fmt.Errorf("--nodes %d: there cannot be fewer than 0", f.nodes)
	case f.ready != "":
		if _, err := condition.Compile(f.ready, workload.ObjectsVariable); err != nil {
			return fmt.Errorf("--ready: %w", err)
		}
	}
	return nil
}

func runFuzz(cmd *cobra.Command, f fuzzFlags, program []string) error {
	if err := f.check(); err != nil {
		return err
	}
	if err := f.playable(cmd, 0); err != nil {
		return err
	}
	sample, others, err := fuzz.ReadSample(f.object)
	if err != nil {
		return err
	}
	w, unjudged, err := f.setting(cmd)
	if err != nil {
		return err
	}
	fuzzer, err := f.fuzzer(w, program)
	if err != nil {
		return err
	}
	fuzzer.Sample, fuzzer.Others, fuzzer.Ignore, fuzzer.Busy, fuzzer.Ready = sample, others, slices.Concat(f.ignore, unjudged), f.busy, f.ready
	fuzzer.Of = append(slices.Clone(w.Install), f.object)
	p, err := f.plan(cmd)
	if err != nil {
		return err
	}
	return playInto(cmd, fuzz.Tool, f.exploreFlags, fuzzer.Testbeds, func(ctx context.Context) (*results.Result[*fuzz.Finding], error) {
		return fuzzer.Run(ctx, fuzz.Plan{Plan: p, Faults: f.faults})
	})
}

// setting returns the initial state of the cluster, and the operator's identity and network. unjudged
// lists the fields that the workload excludes from the verdict, in the format of --ignore.
func (f fuzzFlags) setting(cmd *cobra.Command) (w *workload.Workload, unjudged []string, err error) {
	w = &workload.Workload{}
	if f.workload != "" {
		read, err := workload.ReadForFuzz(f.workload)
		if err != nil {
			return nil, nil, err
		}
		w = read.Setting()
		for _, u := range read.Unjudged {
			unjudged = append(unjudged, u.Resource+" "+u.Path)
		}
	}
	w.Install = append(w.Install, f.install...)
	if w.Nodes == nil || cmd.Flags().Changed("nodes") {
		w.Nodes = &f.nodes
	}
	return w, unjudged, nil
}

// fuzzer returns a fuzzer for the given initial state and operator. The caller must set the fields
// that describe the object to edit.
func (f exploreFlags) fuzzer(w *workload.Workload, program []string) (*fuzz.Fuzzer, error) {
	for _, name := range w.Install {
		if _, err := os.Stat(name); err != nil {
			return nil, fmt.Errorf("--install: %w", err)
		}
	}
	if f.hold == 0 {
		f.hold = time.Second // Fuzz injects no faults that hold events, so this value only has to be valid.
	}
	testbeds, err := f.testbeds(w, program)
	return &fuzz.Fuzzer{Testbeds: testbeds, Limits: f.limits()}, err
}
