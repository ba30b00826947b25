// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package pods

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"tidekeeper.dev/tidekeeper/internal/cli/cmdutil"
	"tidekeeper.dev/tidekeeper/internal/term"
	"tidekeeper.dev/tidekeeper/internal/view"
)

// timelineOptions holds the flags and arguments of pods timeline.
type timelineOptions struct {
	*cmdutil.Env
	selection
	output cmdutil.DataOutput
}

func newTimelineCommand(e *cmdutil.Env) *cobra.Command {
	o := &timelineOptions{Env: e}
	cmd := &cobra.Command{
		Use:   "timeline POD... | -l SELECTOR",
		Short: "Where the time went while pods started, stage by stage",
		Long: `timeline shows how long each stage of a pod's start-up took, as bars on a terminal,
with the slowest stage and the reason for the wait. The reason is in the pod, and once
the wait is over in its events, which are kept for an hour.

Timestamps are in whole seconds: each duration can be off by one either way. ~ marks an
estimate, if the pod does not record the end of a stage. A pod keeps only the last
change of each condition: for a pod whose containers became ready again, the duration
until then is shown.`,
		Example: `  kubectl tide pods timeline web-5d8f-x2v9p -n shop
  kubectl tide pods timeline -l app=web
  kubectl tide pods timeline -l app=web -o json | jq '.[].slowest'`,
		ValidArgsFunction: e.Kubeconfig.CompleteNames(emptyList),
		RunE:              cmdutil.RunE(o),
	}
	o.addTo(cmd)
	o.output.Shows([]view.Startup{}).AddTo(cmd)
	return cmd
}

// Complete implements [cmdutil.Options].
func (o *timelineOptions) Complete(_ *cobra.Command, args []string) error {
	return o.complete(o.Env, args)
}

// Validate implements [cmdutil.Options].
func (o *timelineOptions) Validate() error {
	if err := o.output.Validate(); err != nil {
		return err
	}
	if !o.narrowed() {
		return fmt.Errorf("write the names of pods, or select them with -l; kubectl tide pods slow covers all pods")
	}
	return o.validate()
}

// Run implements [cmdutil.Options].
func (o *timelineOptions) Run(ctx context.Context) error {
	c, err := o.Kubeconfig.Client()
	if err != nil {
		return err
	}
	pods, err := o.list(ctx, c)
	if err != nil {
		return err
	}
	events := o.events(ctx, c)
	startups := []view.Startup{}
	for i := range pods {
		startups = append(startups, view.StartupOf(&pods[i], events[pods[i].UID], o.Now()))
	}
	if done, err := o.output.Print(o.Console.Out, startups); done {
		return err
	}
	if len(startups) == 0 {
		o.Console.NothingFound("pods", o.namespace, true)
		return nil
	}
	return printTimelines(o.Env, startups)
}

// events returns the events about the selected pods, keyed by pod UID. It ignores errors, because
// events only add details about the causes of waits.
func (o *timelineOptions) events(ctx context.Context, c client.Client) map[types.UID][]corev1.Event {
	fields := client.MatchingFields{"involvedObject.kind": podKind.Name}
	if len(o.names) == 1 {
		fields["involvedObject.name"] = o.names[0]
	}
	list := &corev1.EventList{}
	events := map[types.UID][]corev1.Event{}
	if err := c.List(ctx, list, client.InNamespace(o.namespace), fields); err != nil {
		return events
	}
	for _, e := range list.Items {
		events[e.InvolvedObject.UID] = append(events[e.InvolvedObject.UID], e)
	}
	return events
}

// printTimelines prints a waterfall chart for each pod, all on the same scale. For several pods, it
// also prints a summary.
func printTimelines(e *cmdutil.Env, startups []view.Startup) error {
	var longest int64
	for _, s := range startups {
		longest = max(longest, s.Seconds)
	}
	for i, s := range startups {
		if i > 0 {
			fmt.Fprintln(e.Console.Out)
		}
		color := term.Plain
		if !s.Ready {
			color = term.Yellow
		}
		fmt.Fprintln(e.Console.Out, e.Console.Screen.Paint(color, headline(s)))
		if s.Slowest != nil {
			fmt.Fprintln(e.Console.Out, slowestLine(s))
		}
		if err := e.Console.Write(waterfall(s, longest, e.Now(), e.Local, e.Console.Screen)); err != nil {
			return err
		}
	}
	if len(startups) > 1 {
		fmt.Fprintf(e.Console.Out, "\n%s\n", summaryLine(view.SummaryOf(startups)))
	}
	return nil
}

// headline describes a pod's start-up in one line.
func headline(s view.Startup) string {
	whole := view.FormatLength(view.Seconds(s.Seconds))
	text := s.Pod + ": "
	switch {
	case s.Ended:
		text += "has ended or is being deleted; whether it was ready is unknown"
	case s.Ready:
		text += "ready " + whole + " after it was created"
	default:
		text += "not ready for " + whole
	}
	if s.Restarts > 0 {
		text += ", with " + term.Plural(int(s.Restarts), "restart")
	}
	return term.Printable(text)
}

// slowestLine describes a pod's longest start-up stage, and the cause of its duration.
func slowestLine(s view.Startup) string {
	return term.Printable(fmt.Sprintf("slowest: %s, %s: %s", view.StageText(s.Slowest.Stage), view.FormatLength(view.Seconds(s.Slowest.Seconds)), term.OneLine(s.Slowest.Cause)))
}

// summaryLine summarizes the start-ups of several pods.
func summaryLine(s view.StartupSummary) string {
	text := fmt.Sprintf("%s, %d ready", term.Plural(s.Pods, "pod"), s.Ready)
	if s.Ready > 0 {
		text += fmt.Sprintf(": after %s (median), %s (%s, the slowest)",
			view.FormatLength(view.Seconds(s.MedianSeconds)), view.FormatLength(view.Seconds(s.Worst.Seconds)), s.Worst.Pod)
	}
	if s.SlowestOf > 0 {
		text += fmt.Sprintf("; %s is the slowest stage of %d", view.StageText(s.SlowestStage), s.SlowestOf)
	}
	return term.Printable(text)
}

// waterfall returns a table with a row for each start-up stage. On a terminal, each row has a bar
// that begins where the previous bar ends. The bars are scaled so that a start-up of `longest`
// seconds fills the full width.
func waterfall(s view.Startup, longest int64, now time.Time, local *time.Location, screen term.Screen) *term.Table {
	t := &term.Table{Bars: []int{40, 20}, Columns: []term.Column{{Header: "STAGE"}, {Header: "AT (" + term.Zone(now, local) + ")"}, {Header: "TOOK (±1s)"}}}
	if screen.Terminal {
		t.Columns = append(t.Columns, term.Column{Header: "WATERFALL", Drop: 1})
	}
	reasons := slices.ContainsFunc(s.Stages, func(stage view.StartupStage) bool { return stage.WaitedFor != "" })
	if reasons {
		t.Columns = append(t.Columns, term.Column{Header: "WAITED FOR", Text: 9})
	}
	created := make([]term.Cell, len(t.Columns))
	created[0], created[1] = term.Text("created"), term.Text(s.Created.In(local).Format(time.TimeOnly))
	t.Rows = append(t.Rows, created)
	for _, stage := range s.Stages {
		at, color := stage.Start.Add(view.Seconds(stage.Seconds)).In(local).Format(time.TimeOnly), term.Plain
		took := view.FormatLength(view.Seconds(stage.Seconds))
		if stage.Estimated {
			took = "~" + took
		}
		if s.Slowest != nil && stage.Name == s.Slowest.Stage {
			color = term.Yellow
		}
		if !stage.Done {
			at, took, color = "-", took+" so far", term.Red
		}
		row := []term.Cell{term.Text(view.StageText(stage.Name)), term.Text(at), term.Painted(color, took)}
		if screen.Terminal {
			row = append(row, term.Cell{Color: color, Bar: stageBar(stage, s.Created, longest)})
		}
		if reasons {
			row = append(row, term.Text(stage.WaitedFor))
		}
		t.Rows = append(t.Rows, row)
	}
	return t
}

// stageBar returns the bar of a start-up stage. The position of the bar shows when the stage
// started, and the length shows its duration. A start-up of `longest` seconds would fill the full
// width.
func stageBar(stage view.StartupStage, created time.Time, longest int64) *term.Bar {
	bar := &term.Bar{Point: true}
	if longest > 0 {
		bar.From = stage.Start.Sub(created).Seconds() / float64(longest)
		bar.Share = float64(stage.Seconds) / float64(longest)
	}
	return bar
}
