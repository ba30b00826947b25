// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package dashboard

import (
	"cmp"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"tidekeeper.dev/tidekeeper/internal/cli/term"
	"tidekeeper.dev/tidekeeper/internal/podtimeline"
	"tidekeeper.dev/tidekeeper/internal/view"
)

// mostStartups is how many pods the page lists, and mostExplained for how many of them events
// are read: one request each, kept for a while.
const (
	mostStartups  = 25
	mostExplained = 8
)

// startupData is the data of the page of starting pods.
type startupData struct {
	Problems  []string
	Filter    string
	Namespace string
	Since     []choice
	Summary   *view.StartupSummary
	Median    string
	Worst     string
	Stages    []stageKey
	Rows      []startupRow
	Pod       *podPanel
	// Histograms are how long each stage takes, and ByStage is their twin in the terminal.
	Histograms []stageHistogram
	ByStage    string
}

// stageKey is a stage in the legend.
type stageKey struct {
	Number int
	Text   string
}

// startupRow is how one pod came up.
type startupRow struct {
	view.Startup
	Key, Href   string
	Took        string
	Stage, Of   string
	Cause       string
	Segments    []segment
	Chosen      bool
	Progressing bool
}

// sinces are how far the page looks back.
var sinces = []struct {
	text string
	time.Duration
}{{"15m", 15 * time.Minute}, {"1h", time.Hour}, {"24h", 24 * time.Hour}, {"all", 0}}

// podsPage is the page of starting pods.
func podsPage(r *request) (*page, error) {
	d := &startupData{Problems: r.problems(podsKinds...), Filter: r.query.Get("q"), Namespace: r.query.Get("namespace")}
	since := sinces[1]
	for _, s := range sinces {
		if r.query.Get("since") == s.text {
			since = s
		}
	}
	for _, s := range sinces {
		d.Since = append(d.Since, choice{s.text, r.with("since", s.text), s == since})
	}
	for i, name := range podtimeline.StageNames() {
		d.Stages = append(d.Stages, stageKey{i, stageText(name)})
	}
	all := r.startups(since.Duration)
	if len(all) > 0 {
		summary := view.SummaryOf(all)
		d.Summary, d.Median, d.Worst = &summary, view.FormatLength(view.Seconds(summary.MedianSeconds)), view.FormatLength(view.Seconds(summary.Worst.Seconds))
	}
	d.Histograms = stageHistogramsOf(all)
	slowest := view.Slowest(all, mostStartups)
	d.Rows = r.startupRows(slowest, mostExplained)
	if key := r.query.Get("pod"); key != "" {
		d.Pod = r.podPanel(key)
	}
	command := append([]string{"pods", "slow"}, r.namespaceFlags()...)
	if since.Duration > 0 {
		command = append(command, "--since", since.text)
	}
	d.ByStage = r.site.command(append(slices.Clone(command), "--by-stage"))
	return &page{title: "Start-up", template: "pods", data: d, json: slowest, command: command}, nil
}

// startups returns how the pods came up that were created within a time, and that match the
// filters; 0 is any time.
func (r *request) startups(since time.Duration) []view.Startup {
	startups := []view.Startup{}
	q := r.query.Get("q")
	for _, pod := range r.pods() {
		if !r.isShown(pod.Namespace) || since > 0 && !pod.CreationTimestamp.After(r.now().Add(-since)) || q != "" && !strings.Contains(pod.Namespace+"/"+pod.Name, q) {
			continue
		}
		if s := view.StartupOf(pod, nil, r.now()); !s.Ended {
			startups = append(startups, s)
		}
	}
	return startups
}

// slowest are the rows of those that took longest.
func (r *request) slowest(since time.Duration, top int) []startupRow {
	return r.startupRows(view.Slowest(r.startups(since), top), 0)
}

// startupRows are rows, all to the same scale; events are read for the first of them.
func (r *request) startupRows(list []view.Startup, explained int) []startupRow {
	longest := int64(1)
	for _, s := range list {
		longest = max(longest, s.Seconds)
	}
	rows := []startupRow{}
	for i := range list {
		s := &list[i]
		if i < explained && s.Slowest != nil && !s.Slowest.Known {
			s.Explain(r.eventsAbout(ObjectRef{Kind: "Pod", Namespace: s.Namespace, Name: s.Pod, UID: typesUID(s.UID)}))
		}
		row := startupRow{Startup: *s, Key: s.Namespace + "/" + s.Pod, Took: view.FormatLength(view.Seconds(s.Seconds)), Stage: "-", Of: "-", Segments: segmentsOf(s, longest), Progressing: !s.Ready}
		row.Href, row.Chosen = "/pods"+r.with("pod", row.Key), r.query.Get("pod") == row.Key
		if s.Slowest != nil {
			row.Stage, row.Of, row.Cause = stageText(s.Slowest.Stage), view.FormatLength(view.Seconds(s.Slowest.Seconds)), s.Slowest.Cause
		}
		rows = append(rows, row)
	}
	return rows
}

// stageText is the name of a stage for people.
func stageText(name podtimeline.StageName) string { return strings.ReplaceAll(string(name), "_", " ") }

// podPanel is the waterfall of one pod.
type podPanel struct {
	view.Startup
	Close   string
	Command string
	Took    string
	Created string
	Stages  []stageRow
}

// stageRow is a stage in the waterfall.
type stageRow struct {
	Text, At, Took, WaitedFor string
	Bar                       segment
	Done, Slowest, Estimated  bool
}

// podPanel returns the waterfall of a pod, nil if there is no such pod.
func (r *request) podPanel(key string) *podPanel {
	namespace, name, _ := strings.Cut(key, "/")
	if !r.isShown(namespace) {
		return nil
	}
	var found *corev1.Pod
	for _, pod := range r.pods() {
		if pod.Namespace == namespace && pod.Name == name {
			found = pod
		}
	}
	if found == nil {
		return nil
	}
	s := view.StartupOf(found, r.eventsAbout(ObjectRef{Kind: "Pod", Namespace: namespace, Name: name, UID: found.UID}), r.now())
	p := &podPanel{
		Startup: s, Close: r.with("pod", ""), Took: view.FormatLength(view.Seconds(s.Seconds)),
		Created: s.Created.In(r.site.local).Format(time.TimeOnly) + " " + term.Zone(s.Created, r.site.local),
		Command: r.site.command([]string{"pods", "timeline", name, "-n", namespace}),
	}
	bars := segmentsOf(&s, max(1, s.Seconds))
	for i, stage := range s.Stages {
		row := stageRow{
			Text: stageText(stage.Name), At: stage.Start.Add(view.Seconds(stage.Seconds)).In(r.site.local).Format(time.TimeOnly),
			Took: view.FormatLength(view.Seconds(stage.Seconds)), WaitedFor: stage.WaitedFor, Bar: bars[i], Done: stage.Done, Estimated: stage.Estimated,
			Slowest: s.Slowest != nil && s.Slowest.Stage == stage.Name,
		}
		if !stage.Done {
			row.At, row.Took = "-", row.Took+" so far"
		}
		row.WaitedFor = cmp.Or(row.WaitedFor, "-")
		p.Stages = append(p.Stages, row)
	}
	return p
}
