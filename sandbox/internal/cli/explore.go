// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"tidekeeper.dev/tidekeeper/sandbox/internal/explore"
	"tidekeeper.dev/tidekeeper/sandbox/internal/explore/lab"
	"tidekeeper.dev/tidekeeper/sandbox/internal/explore/operator"
	"tidekeeper.dev/tidekeeper/sandbox/internal/explore/testbed"
	"tidekeeper.dev/tidekeeper/sandbox/internal/explore/workload"
	"tidekeeper.dev/tidekeeper/sandbox/internal/fuzz"
	"tidekeeper.dev/tidekeeper/sandbox/internal/results"
)

// exploreFlags holds the values of the flags of `sandbox explore`.
type exploreFlags struct {
	workload, dir, shard, failOnLog, html, junit string
	serviceAccount, init                         string
	runFor, quiet, settle, patience, hold        time.Duration
	only                                         []string
	jobs                                         int
	shrink, hostNetwork, fresh, dryRun           bool
	timelines                                    bool
	// labs holds the sandboxes that this command shares with other commands in the same process. If
	// it is nil, the command starts sandboxes for itself.
	labs *lab.Labs
}

// errFound is the exit code of explore, fuzz and replay if they have found a bug.
const errFound = exitError(2)

func newExplore(labs *lab.Labs) *cobra.Command {
	f := exploreFlags{labs: labs}
	cmd := &cobra.Command{
		Use:   "explore --workload FILE [flags] -- PROGRAM [ARGUMENTS...]",
		Short: "Find the faults that an operator does not survive",
		Long: `Find the faults that an operator does not survive.

The operator is any program, unchanged, in any language: it finds the API server by
$KUBECONFIG, by an argument in which $KUBECONFIG is replaced, or as in a pod. The workload has the
steps of users. First it is played twice without a fault, to learn the writes and watches of the
operator and the final state. Then it is played again and again, each time from the same state and
with a single fault: a crash before or after each write, lost answers, refused requests, events that
come late or never, starts on older lists. A finding is a difference in the final state, an object
that was created too often, an invariant that did not hold at any moment, a panic, or an operator
that does not become quiet; 'sandbox replay' plays it again.

It ends with exit code 0 without a finding, 2 with a finding, and 1 if it could not be explored. The
results are kept in --dir: started again, it continues. If the program, the installed manifests, the
workload, a flag that judges or the sandbox has changed since, all faults are played again, those with
a finding first.`,
		Example: `  # Ten minutes.
  sandbox explore --workload scale.yaml --for 10m -- ./my-operator

  # A first workload, from a sample object and what is installed.
  sandbox explore --workload scale.yaml --init config/samples/shop.yaml config/default

  # Then: what is wrong without a fault, and what would be played.
  sandbox explore --workload scale.yaml --for 10m --dry-run -- ./my-operator

  # Only crashes after a write; the others on another machine.
  sandbox explore --workload scale.yaml --only CrashAfter -- ./my-operator
  sandbox explore --workload scale.yaml --shard 2/4 --dir results-2 -- ./my-operator

  # scale.yaml
  install: [config/crd]
  steps:
  - apply: sample.yaml
  - wait: {resource: deployments, namespace: default, name: sample, for: 'object.status.readyReplicas == 3'}
  - patch: {resource: apps.example.com, namespace: default, name: sample, merge: {spec: {replicas: 5}}}`,
		Args: func(cmd *cobra.Command, args []string) error {
			if f.init != "" {
				return nil // The arguments are the manifests to install, and there may be none.
			}
			return atLeastOne("a program, after --")(cmd, args)
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if f.init != "" {
				return initWorkload(cmd, f, args)
			}
			return runExplore(cmd, f, args)
		},
	}
	flags := cmd.Flags()
	flags.SortFlags = false
	flags.SetInterspersed(false)
	flags.StringVar(&f.workload, "workload", "", "the file with the manifests to install and the steps of users (required)")
	flags.DurationVar(&f.runFor, "for", 0, "how long to play, most promising faults first (default until all are played)")
	flags.StringArrayVar(&f.only, "only", nil, "play only faults with this in their name, such as CrashAfter, StaleStart or 'pods'; may be given several times")
	flags.StringVar(&f.shard, "shard", "", "I/N: play the I-th of N parts of the faults")
	flags.StringVar(&f.dir, "dir", "explore", "the directory for the results")
	flags.StringVar(&f.html, "html", "", "write a report as a single HTML page to this file (default report.html in --dir)")
	flags.StringVar(&f.junit, "junit", "", "write a JUnit report to this file (default junit.xml in --dir)")
	flags.IntVar(&f.jobs, "jobs", sandboxes(2, explore.Waiting), "how many sandboxes play side by side, beside two that mostly wait; by default two for each processor, if there is 1 GiB of memory for each")
	flags.BoolVar(&f.shrink, "shrink", true, "leave out the steps that a finding does not need, in the last fifth of --for")
	flags.BoolVar(&f.timelines, "timelines", false, "keep the timeline of each fault that the operator survives, too, in timelines in --dir")
	addFresh(cmd, &f)
	flags.StringVar(&f.init, "init", "", "play nothing: write --workload, with the steps of users on the sample object in this file. The arguments are the manifests to install")
	flags.BoolVar(&f.dryRun, "dry-run", false, "play no fault: print what the undisturbed runs show, such as errors in the log, missing rights and fields that are not judged, and the faults to play")
	addJudging(cmd, &f)
	cmd.AddCommand(newReport("explore"))
	return cmd
}

func addFresh(cmd *cobra.Command, f *exploreFlags) {
	cmd.Flags().BoolVar(&f.fresh, "fresh", false, "remove the results in --dir, and begin from the start")
}

// addJudging adds the flags of explore and replay that affect whether a run reveals a bug.
func addJudging(cmd *cobra.Command, f *exploreFlags) {
	addSettling(cmd, f)
	cmd.Flags().DurationVar(&f.hold, "hold", 330*time.Second, "how long events are held back, until the expectations of an operator expire")
}

// addSettling adds the flags that explore, fuzz and replay have in common. They set the operator's
// identity and network, how long nothing must happen before a run ends, and when the operator
// counts as failed.
func addSettling(cmd *cobra.Command, f *exploreFlags) {
	flags := cmd.Flags()
	flags.StringVar(&f.serviceAccount, "service-account", "", "NAMESPACE/NAME of the account whose rights the operator has, or none for an administrator's (default the account of the only installed Deployment or StatefulSet that names an account)")
	flags.BoolVar(&f.hostNetwork, "host-network", false, "the operator has the network of this machine, and no network of its own")
	flags.DurationVar(&f.quiet, "quiet", 5*time.Second, "a run without a fault is quiet when nothing has happened for this time")
	flags.DurationVar(&f.settle, "settle", 2*time.Minute, "maximum time until a run without a fault is quiet")
	flags.DurationVar(&f.patience, "patience", 30*time.Second, "additional time with a fault or an edit")
	flags.StringVar(&f.failOnLog, "fail-on-log", "", "a regular expression: a line of the operator's output that matches is a failure, as a panic is")
}

// checkTimes rejects durations with which a run could not be evaluated, such as a --settle that is
// not longer than --quiet.
func (f exploreFlags) checkTimes() error {
	for _, flag := range []struct {
		name  string
		value time.Duration
	}{{"quiet", f.quiet}, {"settle", f.settle}, {"patience", f.patience}, {"hold", f.hold}} {
		if flag.value <= 0 {
			return fmt.Errorf("--%s %s: it must be more than 0", flag.name, flag.value)
		}
	}
	if f.runFor < 0 {
		return fmt.Errorf("--for %s: it must be more than 0, or 0 for no limit", f.runFor)
	}
	if f.settle <= f.quiet {
		return fmt.Errorf("--settle %s: it must be more than --quiet %s, or no step ever comes to rest", f.settle, f.quiet)
	}
	return nil
}

// explorer returns an explorer, which runs the given operator with the given workload.
func (f exploreFlags) explorer(w *workload.Workload, program []string) (*explore.Explorer, error) {
	testbeds, err := f.testbeds(w, program)
	return &explore.Explorer{Testbeds: testbeds, Workload: w, Limits: f.limits(), Hold: f.hold}, err
}

func (f exploreFlags) limits() testbed.Limits {
	return testbed.Limits{Quiet: f.quiet, Settle: f.settle, Patience: f.patience}
}

// testbeds returns a factory of testbeds (sandboxes with an operator), which is configured by the
// flags. It stores the flags for the operator's identity and network in the workload.
func (f exploreFlags) testbeds(w *workload.Workload, program []string) (*testbed.Maker, error) {
	m := &testbed.Maker{Setup: lab.Setup{Workload: w, Command: program}, Labs: f.labs}
	if err := f.checkTimes(); err != nil {
		return nil, err
	}
	var err error
	if f.failOnLog != "" {
		if m.FailOnLog, err = regexp.Compile(f.failOnLog); err != nil {
			return nil, fmt.Errorf("--fail-on-log: %w", err)
		}
	}
	if f.serviceAccount != "" {
		if f.serviceAccount != workload.Administrator {
			if _, err := namespacedName("--service-account", f.serviceAccount); err != nil {
				return nil, err
			}
		}
		w.ServiceAccount = f.serviceAccount
	}
	w.HostNetwork = w.HostNetwork || f.hostNetwork
	if !operator.OwnProgram(program[0]) {
		if _, err := exec.LookPath(program[0]); err != nil {
			return nil, fmt.Errorf("the operator: %w", err)
		}
	}
	return m, nil
}

func runExplore(cmd *cobra.Command, f exploreFlags, program []string) error {
	if f.workload == "" {
		return errors.New("--workload is missing: name the file with the steps of users")
	}
	w, err := workload.Read(f.workload)
	if err != nil {
		return err
	}
	e, err := f.explorer(w, program)
	if err != nil {
		return err
	}
	e.Of = []string{f.workload}
	if err := f.playable(cmd, explore.Waiting); err != nil {
		return err
	}
	p, err := f.plan(cmd)
	if err != nil {
		return err
	}
	if f.dryRun {
		return runDry(cmd, e, explore.Plan{Plan: p})
	}
	return playInto(cmd, explore.Tool, f, e.Testbeds, func(ctx context.Context) (*results.Result[*explore.Finding], error) {
		return e.Run(ctx, explore.Plan{Plan: p, Shrink: f.shrink, Timelines: f.timelines})
	})
}

// runDry plays the workload without a fault and prints what it shows. It returns errFound if there is
// a problem even so.
func runDry(cmd *cobra.Command, e *explore.Explorer, p explore.Plan) error {
	dir, err := os.MkdirTemp("", "explore-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	e.Testbeds.Dir = dir
	defer e.Testbeds.Close()
	ctx, stop := untilHangup(cmd.Context())
	defer stop()
	problems, err := e.DryRun(ctx, p, cmd.OutOrStdout())
	if err == nil && problems {
		return errFound
	}
	return err
}

// plan returns the options that select the faults or edits to try, as the flags specify.
func (f exploreFlags) plan(cmd *cobra.Command) (results.Plan, error) {
	i, n, err := shard(f.shard)
	return results.Plan{For: f.runFor, Only: f.only, Shard: i, Shards: n, Jobs: f.jobs, Fresh: f.fresh, Progress: cmd.ErrOrStderr()}, err
}

// playInto calls the function "play", which must try the selected faults or edits in testbeds below
// the directory --dir. It then reports the result, and returns the exit code as an error (see
// tell).
func playInto[F results.Finding](cmd *cobra.Command, tool *results.Tool[F], f exploreFlags, m *testbed.Maker, play func(context.Context) (*results.Result[F], error)) error {
	var err error
	if m.Dir, err = filepath.Abs(f.dir); err != nil {
		return err
	}
	unlock, err := results.Lock(m.Dir)
	if err != nil {
		return err
	}
	defer unlock()
	defer m.Close()
	ctx, stop := untilHangup(cmd.Context())
	defer stop()
	result, err := play(ctx)
	if result == nil {
		return err
	}
	return errors.Join(err, tell(cmd, tool, result, m.Dir, f.html, f.junit))
}

// untilHangup returns a context that is also canceled on SIGHUP, for example when the terminal is
// closed. A process that ignores SIGHUP, as under nohup, continues to ignore it.
func untilHangup(ctx context.Context) (context.Context, context.CancelFunc) {
	if signal.Ignored(syscall.SIGHUP) {
		return context.WithCancel(ctx)
	}
	return signal.NotifyContext(ctx, syscall.SIGHUP)
}

// playable rejects a number of jobs below 1 and report files in missing directories, before any run
// is started. It prints a warning if there is too little memory for a sandbox per job. The
// parameter "others" is the number of other sandboxes that need memory, too.
func (f exploreFlags) playable(cmd *cobra.Command, others int) error {
	if f.jobs < 1 {
		return fmt.Errorf("--jobs %d: at least 1 is needed", f.jobs)
	}
	if room := roomFor(available(), others); f.jobs > room {
		fmt.Fprintf(cmd.ErrOrStderr(), "warning: --jobs %d: each sandbox takes about 1 GiB of memory, of which there is enough for %d\n", f.jobs, room)
	}
	for name, file := range map[string]string{"html": f.html, "junit": f.junit} {
		if file == "" {
			continue
		}
		if info, err := os.Stat(filepath.Dir(file)); err != nil || !info.IsDir() {
			return fmt.Errorf("--%s %s: there is no directory %s", name, file, filepath.Dir(file))
		}
	}
	return nil
}

// tell prints the report of a result and writes the report files. It returns errFound if the result
// contains a confirmed finding, or an error if the result is inconclusive, for example because too
// many runs could not be evaluated.
func tell[F results.Finding](cmd *cobra.Command, tool *results.Tool[F], result *results.Result[F], dir, html, junit string) error {
	if html == "" {
		html = filepath.Join(dir, "report.html")
	}
	if junit == "" {
		junit = filepath.Join(dir, "junit.xml")
	}
	tool.Text(cmd.OutOrStdout(), result, dir)
	if err := errors.Join(tool.HTML(html, result), tool.JUnit(junit, result), tool.JSON(dir, result)); err != nil {
		return err
	}
	fmt.Fprintf(cmd.OutOrStdout(), "Reports: %s, %s\n", html, junit)
	if result.Confirmed() > 0 {
		return errFound
	}
	return result.Judged()
}

// shard parses the value I/N of the --shard flag, which selects the I-th of N parts. For an empty
// value, it returns 1 and 1, which select everything.
func shard(text string) (i, n int, err error) {
	if text == "" {
		return 1, 1, nil
	}
	first, second, _ := strings.Cut(text, "/")
	i, err1 := strconv.Atoi(first)
	n, err2 := strconv.Atoi(second)
	if err1 != nil || err2 != nil || i < 1 || n < i {
		return 0, 0, fmt.Errorf("--shard %q: want I/N, such as 1/4 for the first of four parts", text)
	}
	return i, n, nil
}

// newReport returns the command that combines the results of explore or fuzz in several directories
// into a single report.
func newReport(tool string) *cobra.Command {
	var html, junit string
	cmd := &cobra.Command{
		Use:     "report DIR...",
		Short:   "Report the findings of one or several directories",
		Example: "  sandbox " + tool + " report results-*/ --html report.html",
		Args:    atLeastOne("a directory of sandbox explore or sandbox fuzz"),
		RunE: func(cmd *cobra.Command, args []string) error {
			switch {
			case fuzz.Tool.Is(args[0]):
				return tellMerged(cmd, fuzz.Tool, args, html, junit)
			case explore.Tool.Is(args[0]):
				return tellMerged(cmd, explore.Tool, args, html, junit)
			}
			return fmt.Errorf("%s has no results of sandbox explore or sandbox fuzz", args[0])
		},
	}
	cmd.Flags().StringVar(&html, "html", "", "write the HTML page to this file (default report.html in the first directory)")
	cmd.Flags().StringVar(&junit, "junit", "", "write the JUnit report to this file (default junit.xml in the first directory)")
	return cmd
}

// tellMerged reports the combined results in the given directories. It returns the same errors as
// tell.
func tellMerged[F results.Finding](cmd *cobra.Command, tool *results.Tool[F], dirs []string, html, junit string) error {
	merged, err := tool.Merge(dirs)
	if err != nil {
		return err
	}
	return tell(cmd, tool, merged, dirs[0], html, junit)
}
