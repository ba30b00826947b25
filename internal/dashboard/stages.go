// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package dashboard

import (
	"fmt"

	"tidekeeper.dev/tidekeeper/internal/view"
)

// Dimensions of a start-up stage's histogram, in SVG units: the height of the histogram, and the
// width of its columns. The histogram has a column for each range of durations.
const (
	histogramHeight = 60
	histogramColumn = 20
)

// stageHistogram shows the distribution of a start-up stage's duration.
type stageHistogram struct {
	view.StageSummary
	Number        int
	Text          string
	Median, Worst string
	Title         string
	Width         int
	Bars          []stageBar
}

// stageBar is a column of a start-up stage's histogram.
type stageBar struct {
	view.StageClass
	Label, Title        string
	X, Y, Width, Height int
}

// stageHistogramsOf returns a histogram for each start-up stage. All histograms have the same
// scale, for comparison. It returns nil if no pod has completed a stage.
func stageHistogramsOf(startups []view.Startup) []stageHistogram {
	var times view.StageTimes
	for i := range startups {
		times.Add(&startups[i])
	}
	summaries, most := times.Summaries(), 0
	for _, s := range summaries {
		for _, class := range s.Classes {
			most = max(most, class.Pods)
		}
	}
	if most == 0 {
		return nil
	}
	var list []stageHistogram
	for i, s := range summaries {
		h := stageHistogram{StageSummary: s, Number: i, Text: view.StageText(s.Stage), Median: "-", Worst: "-", Width: len(s.Classes) * histogramColumn}
		if s.Pods > 0 {
			h.Median, h.Worst = view.FormatLength(view.Seconds(s.MedianSeconds)), view.FormatLength(view.Seconds(s.MaxSeconds))
		}
		h.Title = fmt.Sprintf("%s: %s, median %s, worst %s", h.Text, plural(s.Pods, "pod"), h.Median, h.Worst)
		for j, class := range s.Classes {
			height := height(class.Pods, most, histogramHeight)
			h.Bars = append(h.Bars, stageBar{
				StageClass: class, Label: class.From(), Title: class.Text() + ": " + plural(class.Pods, "pod"),
				X: j * histogramColumn, Y: histogramHeight - height, Width: histogramColumn - 2, Height: height,
			})
		}
		list = append(list, h)
	}
	return list
}
