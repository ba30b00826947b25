// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"tidekeeper.dev/tidekeeper/internal/podstartup"
)

func (a *app) timelineCommand() *cobra.Command {
	var flags podFlags
	var format data
	cmd := &cobra.Command{
		Use:   "timeline POD... | -l SELECTOR",
		Short: "Where the time went while pods came up, stage by stage",
		Long: `timeline shows for each pod how long each stage of its start-up took, on a
terminal as bars, with the slowest stage and what it waited for. That comes from
the pod, and of waits that are over from its events, which are kept for an hour.

The API keeps whole seconds: each length can be off by one either way. ~ marks one
whose end the pod does not tell. A pod keeps only the last change of a condition,
so that one that ceased to be ready shows how long it took to the last time.`,
		Example: `  kubectl tide pods timeline web-5d8f-x2v9p -n shop
  kubectl tide pods timeline -l app=web
  kubectl tide pods timeline -l app=web -o json | jq '.[].slowest'`,
		ValidArgsFunction: a.namesOfPods(),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := format.check(); err != nil {
				return err
			}
			choice, err := a.choosePods(flags, args)
			if err != nil {
				return err
			}
			if !choice.narrowed() {
				return fmt.Errorf("write the names of pods, or choose by label with -l: kubectl tide pods slow looks at all")
			}
			c, err := a.client()
			if err != nil {
				return err
			}
			pods, err := a.listPods(cmd.Context(), c, choice)
			if err != nil {
				return err
			}
			events := eventsOfPods(cmd.Context(), c, choice)
			startups := []startup{}
			for i := range pods {
				startups = append(startups, startupOf(&pods[i], events[pods[i].UID], a.now()))
			}
			if done, err := format.print(a.out, startups); done {
				return err
			}
			if len(startups) == 0 {
				a.sayNothingFound("pods", flags.all, true)
				return nil
			}
			return a.writeTimelines(startups)
		},
	}
	flags.addTo(cmd)
	format.addTo(cmd)
	return cmd
}

// eventsOfPods returns the events of pods by the UID of the pod. They only make
// causes more exact: who may not see them is shown the rest.
func eventsOfPods(ctx context.Context, c client.Client, choice podChoice) map[types.UID][]corev1.Event {
	fields := client.MatchingFields{"involvedObject.kind": podKind}
	if len(choice.names) == 1 {
		fields["involvedObject.name"] = choice.names[0]
	}
	list := &corev1.EventList{}
	events := map[types.UID][]corev1.Event{}
	if err := c.List(ctx, list, client.InNamespace(choice.namespace), fields); err != nil {
		return events
	}
	for _, e := range list.Items {
		events[e.InvolvedObject.UID] = append(events[e.InvolvedObject.UID], e)
	}
	return events
}

// writeTimelines prints a waterfall for each pod, all to the same scale, and of
// several what they have in common.
func (a *app) writeTimelines(startups []startup) error {
	var longest int64
	for _, s := range startups {
		longest = max(longest, s.Seconds)
	}
	for i, s := range startups {
		if i > 0 {
			fmt.Fprintln(a.out)
		}
		h := plain
		if !s.Ready {
			h = yellow
		}
		fmt.Fprintln(a.out, a.screen.paint(h, summaryOf(s)))
		if s.Slowest != nil {
			fmt.Fprintln(a.out, slowestOf(s))
		}
		if err := waterfall(s, longest, a.local, a.screen).writeTo(a.out, a.screen); err != nil {
			return err
		}
	}
	if len(startups) > 1 {
		fmt.Fprintf(a.out, "\n%s\n", commonOf(startups))
	}
	return nil
}

// summaryOf says in one line how a pod came up.
func summaryOf(s startup) string {
	whole := lengthWords(seconds(s.Seconds))
	text := s.Pod + ": "
	switch {
	case s.Ended:
		text += "has ended or is being deleted, and does not tell whether it was ready"
	case s.Ready:
		text += "ready " + whole + " after it was created"
	default:
		text += "not ready for " + whole
	}
	if s.Restarts > 0 {
		text += ", with " + plural(int(s.Restarts), "restart")
	}
	return printable(text)
}

// slowestOf says which stage took longest, and why.
func slowestOf(s startup) string {
	return printable(fmt.Sprintf("slowest: %s, %s: %s", stageWords(s.Slowest.Stage), lengthWords(seconds(s.Slowest.Seconds)), oneLine(s.Slowest.Cause)))
}

// commonOf says how several pods came up.
func commonOf(startups []startup) string {
	var ready []int64
	count, took := map[podstartup.StageName]int{}, map[podstartup.StageName]int64{}
	worst := startups[0]
	for _, s := range startups {
		if s.Ready {
			ready = append(ready, s.Seconds)
			if !worst.Ready || s.Seconds > worst.Seconds {
				worst = s
			}
		}
		if s.Slowest != nil {
			count[s.Slowest.Stage]++
			took[s.Slowest.Stage] += s.Slowest.Seconds
		}
	}
	text := fmt.Sprintf("%s, %d ready", plural(len(startups), "pod"), len(ready))
	if len(ready) > 0 {
		slices.Sort(ready)
		median := seconds(ready[(len(ready)-1)/2])
		text += fmt.Sprintf(": after %s (median), %s (%s, the slowest)", lengthWords(median), lengthWords(seconds(worst.Seconds)), worst.Pod)
	}
	// Of two that are it as often, the one that took more time.
	most := slices.MaxFunc(podstartup.StageNames(), func(a, b podstartup.StageName) int {
		return cmp.Or(cmp.Compare(count[a], count[b]), cmp.Compare(took[a], took[b]))
	})
	if count[most] > 0 {
		text += fmt.Sprintf("; %s is the slowest stage of %d", stageWords(most), count[most])
	}
	return printable(text)
}

// stageWords is the name of a stage for people.
func stageWords(name podstartup.StageName) string {
	return strings.ReplaceAll(string(name), "_", " ")
}

// waterfallWidth is how long the bars are: on a narrow screen there are none, so
// that the numbers are seen.
func waterfallWidth(s screen) int {
	switch {
	case !s.terminal, s.width < 60:
		return 0
	case s.width < 100:
		return 20
	default:
		return 40
	}
}

// waterfall has a line for each stage, on a terminal with a bar that begins
// where the one before it ends; so many seconds are the whole width.
func waterfall(s startup, longest int64, local *time.Location, screen screen) *table {
	width := waterfallWidth(screen)
	t := &table{header: []string{"STAGE", "AT", "TOOK (±1s)"}, uncut: 3}
	created := []cell{{"created", plain}, {s.Created.In(local).Format(time.TimeOnly), plain}, {"", plain}}
	if width > 0 {
		t.header, t.uncut = append(t.header, "WATERFALL"), 4
		t.widths = []int{0, 0, 0, width}
		created = append(created, cell{})
	}
	told := slices.ContainsFunc(s.Stages, func(stage startupStage) bool { return stage.WaitedFor != "" })
	if told {
		t.header, created = append(t.header, "WAITED FOR"), append(created, cell{})
	}
	t.rows = append(t.rows, created)
	for _, stage := range s.Stages {
		at, h := stage.Start.Add(seconds(stage.Seconds)).In(local).Format(time.TimeOnly), plain
		took := lengthWords(seconds(stage.Seconds))
		if stage.Estimated {
			took = "~" + took
		}
		if s.Slowest != nil && stage.Name == s.Slowest.Stage {
			h = yellow
		}
		if !stage.Done {
			at, took, h = "-", took+" so far", red
		}
		row := []cell{{stageWords(stage.Name), plain}, {at, plain}, {took, h}}
		if width > 0 {
			row = append(row, cell{fall(stage, s.Created, longest, width), h})
		}
		if told {
			row = append(row, cell{stage.WaitedFor, plain})
		}
		t.rows = append(t.rows, row)
	}
	return t
}

// fall draws the bar of a stage in its place.
func fall(stage startupStage, created time.Time, longest int64, width int) string {
	if longest == 0 {
		return "▏"
	}
	before := math.Round(stage.Start.Sub(created).Seconds() / float64(longest) * float64(width))
	before = min(before, float64(width-1))
	drawn := bar(float64(stage.Seconds)/float64(longest), width)
	if drawn == "" {
		drawn = "▏"
	}
	return strings.Repeat(" ", int(before)) + drawn
}
