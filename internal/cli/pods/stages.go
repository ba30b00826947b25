// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package pods

import (
	"context"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"tidekeeper.dev/tidekeeper/internal/term"
	"tidekeeper.dev/tidekeeper/internal/view"
)

// stages prints statistics about the duration of each start-up stage, over all selected pods.
func (o *slowOptions) stages(ctx context.Context, c client.Client) error {
	var times view.StageTimes
	pods, counted := 0, 0
	err := o.each(ctx, c, func(pod *corev1.Pod) {
		pods++
		if s := view.StartupOf(pod, nil, o.Now()); o.counts(&s) {
			counted++
			times.Add(&s)
		}
	})
	if err != nil {
		return err
	}
	summaries := times.Summaries()
	if done, err := o.output.Print(o.Console.Out, summaries); done {
		return err
	}
	if counted == 0 {
		o.Console.NothingFound("pods", o.namespace, o.narrowed() || o.since.Duration > 0 || pods > 0)
		return nil
	}
	return o.Console.Write(stagesTable(summaries))
}

// stagesTable returns a table with a row for each start-up stage, and a column for each range of
// durations.
func stagesTable(summaries []view.StageSummary) *term.Table {
	t := &term.Table{Columns: []term.Column{{Header: "STAGE"}, {Header: "PODS"}, {Header: "MEDIAN"}, {Header: "WORST"}}}
	for i := range summaries[0].Classes {
		t.Columns = append(t.Columns, term.Column{Header: summaries[0].Classes[i].Text(), Drop: len(summaries[0].Classes) - i})
	}
	for i := range summaries {
		s := &summaries[i]
		median, worst := "-", "-"
		if s.Pods > 0 {
			median, worst = view.FormatLength(view.Seconds(s.MedianSeconds)), view.FormatLength(view.Seconds(s.MaxSeconds))
		}
		row := []term.Cell{term.Text(view.StageText(s.Stage)), term.Text(strconv.Itoa(s.Pods)), term.Text(median), term.Text(worst)}
		for _, class := range s.Classes {
			row = append(row, term.Text(strconv.Itoa(class.Pods)))
		}
		t.Rows = append(t.Rows, row)
	}
	return t
}
