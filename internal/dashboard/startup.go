// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package dashboard

import (
	"cmp"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"tidekeeper.dev/tidekeeper/internal/pods/podtimeline"
	"tidekeeper.dev/tidekeeper/internal/term"
	"tidekeeper.dev/tidekeeper/internal/view"
)

// mostStartups is how many pods the page lists, and mostExplained for how many of them events
// are read: a request for each, kept for a while.
const (
	mostStartups  = 25
	mostExplained = 8
)

// startupData is the data of the page of starting pods.
type startupData struct {
	Problems  []string
	NoPods    string // why the pods are not known
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

// startupRow is the start of a pod.
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

// startups are the starts of pods.
type startups struct {
	now     time.Time
	local   *time.Location
	address address
	links   links
	pods    []*corev1.Pod
	// events reads the events about an object.
	events func(ObjectRef) []corev1.Event
}

// podsPage is the page of starting pods.
func podsPage(r *request) (*page, error) {
	a, starts := r.address, r.startups()
	d := &startupData{Problems: r.snapshot.problemsOf(podsKinds...), NoPods: r.snapshot.problem(podsKinds...), Filter: a.get("q"), Namespace: a.get("namespace")}
	since := sinces[1]
	for _, s := range sinces {
		if a.get("since") == s.text {
			since = s
		}
	}
	for _, s := range sinces {
		d.Since = append(d.Since, choice{s.text, a.with("since", s.text), s == since})
	}
	for i, name := range podtimeline.StageNames() {
		d.Stages = append(d.Stages, stageKey{i, stageText(name)})
	}
	all := starts.within(since.Duration)
	if len(all) > 0 {
		summary := view.SummaryOf(all)
		d.Summary, d.Median, d.Worst = &summary, view.FormatLength(view.Seconds(summary.MedianSeconds)), view.FormatLength(view.Seconds(summary.Worst.Seconds))
	}
	d.Histograms = stageHistogramsOf(all)
	slowest := view.Slowest(all, mostStartups)
	d.Rows = starts.rows(slowest, mostExplained)
	if key := a.get("pod"); key != "" {
		d.Pod = starts.panel(key)
	}
	command := append([]string{"pods", "slow"}, a.namespaceFlags()...)
	if since.Duration > 0 {
		command = append(command, "--since", since.text)
	}
	d.ByStage = r.frame.links.command(append(slices.Clone(command), "--by-stage"))
	return &page{title: "Start-up", template: "pods", data: d, json: slowest, command: command, unknown: r.snapshot.unknown(podsKinds...)}, nil
}

// within returns the starts of pods that were created within a time and match the filters; 0 is any
// time.
func (u *startups) within(since time.Duration) []view.Startup {
	list := []view.Startup{}
	for _, pod := range u.pods {
		if !u.address.shows(pod.Namespace) || since > 0 && !pod.CreationTimestamp.After(u.now.Add(-since)) || !u.address.matches(pod.Namespace+"/"+pod.Name) {
			continue
		}
		if s := view.StartupOf(pod, nil, u.now); !s.Ended {
			list = append(list, s)
		}
	}
	return list
}

// slowest returns the rows of the pods that took longest.
func (u *startups) slowest(since time.Duration, top int) []startupRow {
	return u.rows(view.Slowest(u.within(since), top), 0)
}

// rows returns rows, all to the same scale. Events are read for the first rows, as many as explained.
func (u *startups) rows(list []view.Startup, explained int) []startupRow {
	longest := int64(1)
	for _, s := range list {
		longest = max(longest, s.Seconds)
	}
	rows := []startupRow{}
	for i := range list {
		s := &list[i]
		if i < explained && s.Slowest != nil && !s.Slowest.Known {
			s.Explain(u.events(ObjectRef{Kind: "Pod", Namespace: s.Namespace, Name: s.Pod, UID: typesUID(s.UID)}))
		}
		row := startupRow{Startup: *s, Key: s.Namespace + "/" + s.Pod, Took: view.FormatLength(view.Seconds(s.Seconds)), Stage: "-", Of: "-", Segments: segmentsOf(s, longest), Progressing: !s.Ready}
		row.Href, row.Chosen = "/pods"+u.address.with("pod", row.Key), u.address.get("pod") == row.Key
		if s.Slowest != nil {
			row.Stage, row.Of, row.Cause = stageText(s.Slowest.Stage), view.FormatLength(view.Seconds(s.Slowest.Seconds)), s.Slowest.Cause
		}
		rows = append(rows, row)
	}
	return rows
}

// stageText is the name of a stage for people.
func stageText(name podtimeline.StageName) string { return strings.ReplaceAll(string(name), "_", " ") }

// podPanel is the waterfall of a pod.
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

// panel returns the waterfall of a pod, nil if there is no such pod.
func (u *startups) panel(key string) *podPanel {
	namespace, name, _ := strings.Cut(key, "/")
	if !u.address.shows(namespace) {
		return nil
	}
	var found *corev1.Pod
	for _, pod := range u.pods {
		if pod.Namespace == namespace && pod.Name == name {
			found = pod
		}
	}
	if found == nil {
		return nil
	}
	s := view.StartupOf(found, u.events(ObjectRef{Kind: "Pod", Namespace: namespace, Name: name, UID: found.UID}), u.now)
	p := &podPanel{
		Startup: s, Close: u.address.with("pod", ""), Took: view.FormatLength(view.Seconds(s.Seconds)),
		Created: s.Created.In(u.local).Format(time.TimeOnly) + " " + term.Zone(s.Created, u.local),
		Command: u.links.command([]string{"pods", "timeline", name, "-n", namespace}),
	}
	bars := segmentsOf(&s, max(1, s.Seconds))
	for i, stage := range s.Stages {
		row := stageRow{
			Text: stageText(stage.Name), At: stage.Start.Add(view.Seconds(stage.Seconds)).In(u.local).Format(time.TimeOnly),
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
