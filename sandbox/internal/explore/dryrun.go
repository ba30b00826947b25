// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package explore

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"time"

	"tidekeeper.dev/tidekeeper/sandbox/internal/explore/baseline"
	"tidekeeper.dev/tidekeeper/sandbox/internal/explore/faults"
	"tidekeeper.dev/tidekeeper/sandbox/internal/explore/judge"
	"tidekeeper.dev/tidekeeper/sandbox/internal/explore/lab"
	"tidekeeper.dev/tidekeeper/sandbox/internal/explore/observe"
	"tidekeeper.dev/tidekeeper/sandbox/internal/words"
)

// Limits of the lists in the description of a dry run.
const (
	mostLogErrors   = 10
	mostFaultsShown = 30
)

// DryRun plays the workload without a fault, as Run does first, and writes to out what users should
// know before they play faults: what is wrong already, what is not judged, and which faults follow. It
// reports whether the runs have problems. It keeps no results.
func (e *Explorer) DryRun(ctx context.Context, p Plan, out io.Writer) (problems bool, err error) {
	base, a, err := e.learnBaseline(ctx, p.Jobs, p.Progress)
	if err != nil {
		return false, err
	}
	if e.Testbeds.OneAtATime() {
		p.Jobs, base.Elects = 1, false
	}
	d := dryRun{base: base, undisturbed: a, left: choose(faults.PlanAll(base), p), plan: p, hold: e.Hold, oneAtATime: e.Testbeds.OneAtATime()}
	d.describe(out)
	return len(a.Problems) > 0, nil
}

// dryRun is what runs without a fault have shown, and the faults that would be played.
type dryRun struct {
	base        *baseline.Baseline
	undisturbed *judge.Outcome
	left        []faults.Planned
	plan        Plan
	// hold is the time for which some faults hold back events.
	hold       time.Duration
	oneAtATime bool
}

func (d *dryRun) describe(out io.Writer) {
	fmt.Fprintf(out, "Learnt: %s.\n", d.base.Describe())
	d.describeProblems(out)
	list(out, "Errors in the operator's log, each once, without its numbers", logErrors(d.undisturbed.Output), mostLogErrors)
	if text := lab.MayNot(d.undisturbed.Requests); text != "" {
		fmt.Fprintf(out, "\nThe operator may not: %s\n", text)
	}
	list(out, "The operator asks for kinds that the API server does not serve", notServed(d.undisturbed.Requests), mostLogErrors)
	list(out, "Writes at rest, which change nothing", idle(d.undisturbed.Steps), mostLogErrors)
	d.describeMasked(out)
	d.describeFaults(out)
}

func (d *dryRun) describeProblems(out io.Writer) {
	if len(d.undisturbed.Problems) == 0 {
		fmt.Fprintln(out, "\nWithout a fault, nothing is found.")
		return
	}
	fmt.Fprintln(out, "\nFound without a fault:")
	for _, p := range d.undisturbed.Problems {
		fmt.Fprintf(out, "  step %d: %s\n", p.Step, p.Oracle)
		for _, line := range p.Lines {
			fmt.Fprintf(out, "    %s\n", words.OneLine(line))
		}
	}
}

// describeMasked lists the fields that are not judged because they differ between the runs. A field
// that ought to be equal is a mistake of the operator; the others can be named in the workload.
func (d *dryRun) describeMasked(out io.Writer) {
	var differing []string
	unjudged := map[string]bool{}
	for _, m := range d.base.Masked() {
		if m.Why != "" && m.Why != baseline.DiffersUndisturbed {
			continue
		}
		differing = append(differing, m.String())
		resource, _, _ := strings.Cut(m.Object, " ")
		if m.Path != "" && !m.Number {
			unjudged[fmt.Sprintf("- {resource: %s, path: '%s'}", resource, m.Path)] = true
		}
	}
	list(out, "Different in the two runs, and therefore not judged", differing, len(differing))
	if len(unjudged) > 0 {
		fmt.Fprintf(out, "If that is as it should be, the workload can say so:\n\n  unjudged:\n  %s\n", strings.Join(slices.Sorted(maps.Keys(unjudged)), "\n  "))
	}
}

func (d *dryRun) describeFaults(out io.Writer) {
	if len(d.left) == 0 {
		fmt.Fprintln(out, "\nThere are no faults to play.")
		return
	}
	counts := map[faults.Kind]int{}
	for _, f := range d.left {
		counts[f.Kind]++
	}
	var kinds []string
	for _, kind := range slices.SortedFunc(maps.Keys(counts), func(a, b faults.Kind) int { return cmp.Or(cmp.Compare(counts[b], counts[a]), cmp.Compare(a, b)) }) {
		kinds = append(kinds, fmt.Sprintf("%s %d", kind, counts[kind]))
	}
	fmt.Fprintf(out, "\nFaults to play: %d (%s).\n", len(d.left), strings.Join(kinds, ", "))
	all := d.lasting()
	fmt.Fprintf(out, "With --jobs %d they take %s or longer", max(1, d.plan.Jobs), max(time.Minute, all.Round(time.Minute)))
	if d.plan.For > 0 && d.plan.For < all {
		fmt.Fprintf(out, "; in %s, about %.0f are played", d.plan.For, float64(len(d.left))*d.plan.For.Seconds()/all.Seconds())
	}
	fmt.Fprintln(out, ".")
	chosen := faults.NewVariety().Choose(d.left, mostFaultsShown)
	names := make([]string, 0, len(chosen))
	for i := range chosen {
		names = append(names, chosen[i].Name())
	}
	list(out, "The first of them", names, len(names))
}

// lasting returns the time that the faults take at least. Faults that hold back events for minutes have
// sandboxes of their own, unless only one fault is played at a time.
func (d *dryRun) lasting() time.Duration {
	var short, long time.Duration
	took := d.undisturbed.Took
	for i := range d.left {
		if d.left[i].Effects().Holds {
			long += took + d.hold
		} else {
			short += took
		}
	}
	if d.oneAtATime {
		return short + long
	}
	return max(short/time.Duration(max(1, d.plan.Jobs)), long/Waiting)
}

// list writes a title and at most `most` lines, or nothing if there are no lines.
func list(out io.Writer, title string, lines []string, most int) {
	if len(lines) == 0 {
		return
	}
	fmt.Fprintf(out, "\n%s:\n", title)
	for i, line := range lines {
		if i == most {
			fmt.Fprintf(out, "  … and %d more\n", len(lines)-most)
			return
		}
		fmt.Fprintf(out, "  %s\n", words.OneLine(line))
	}
}

// An error in a log is a line of klog with the severity E or F, a field level=error of a structured
// log, or a line with a word such as error.
var (
	errorLine = regexp.MustCompile(`^[EF]\d{4} |"?level"?[=:]"?(error|fatal)|(?i:\b(error|fatal|panic)\b)`)
	numbers   = regexp.MustCompile(`[0-9a-f]*[0-9][0-9a-f]*`)
)

// logErrors returns the lines of a log that report an error. Of lines that differ only in numbers, such
// as times, it returns the first.
func logErrors(log []string) []string {
	var found []string
	seen := map[string]bool{}
	for _, line := range log {
		same := numbers.ReplaceAllString(line, "")
		if errorLine.MatchString(line) && !seen[same] {
			found = append(found, line)
			seen[same] = true
		}
	}
	return found
}

// notServed returns the resources that the operator lists or watches and that the API server does not
// serve, such as those of a version of Kubernetes in which they are gone.
func notServed(requests []observe.Request) []string {
	found := map[string]bool{}
	for i := range requests {
		r := &requests[i]
		group := r.Resource == "" && strings.HasPrefix(r.Path, "/apis/") // a question for the kinds of a group
		collection := r.Resource != "" && r.Name == "" && slices.Contains([]string{"list", "watch", "watchlist"}, r.Verb)
		if r.Upstream == http.StatusNotFound && (group || collection) {
			found[cmp.Or(r.Resource, strings.TrimPrefix(r.Path, "/apis/"))] = true
		}
	}
	return slices.Sorted(maps.Keys(found))
}

// idle returns a line for each step at whose end the operator writes although nothing changes.
func idle(steps []observe.StepOutcome) []string {
	var lines []string
	for i := range steps {
		if steps[i].Idle > 0 {
			lines = append(lines, fmt.Sprintf("at the end of step %d: %s", i, words.Times(steps[i].Idle)))
		}
	}
	return lines
}
