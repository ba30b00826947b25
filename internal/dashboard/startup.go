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

// mostStartups is the maximum number of rows for ready pods. mostNotReady is the maximum number of
// rows for groups of pods that are not ready. mostExplained is the maximum number of rows in each
// table for which events are read, because reading the events of a pod takes an API request.
const (
	mostStartups  = 20 // as many as kubectl tide pods slow lists
	mostNotReady  = 12
	mostExplained = 8
)

// startupData is the template data of the page about pod start-ups.
type startupData struct {
	Problems  []string
	NoPods    string // reason why the pods are unknown, or ""
	Filter    string
	Namespace string
	Since     []choice
	Summary   *view.StartupSummary
	Median    string
	Worst     string
	Stages    []stageKey
	// Waiting lists groups of pods that are not ready. NotReady is the total number of pods that
	// are not ready. MoreWaiting is the number of groups that Waiting omits.
	Waiting     []notReadyRow
	NotReady    int
	MoreWaiting int
	// Rows lists the pods that took the longest to become ready.
	Rows []startupRow
	// NoCause describes the usual causes of waiting in the stages for which Rows shows no cause.
	// NoEvents explains why the events of some pods are unknown. Each is "" otherwise.
	NoCause, NoEvents string
	Pod               *podPanel
	// ReadyOnly and NotReadyOnly are the kubectl tide commands that list the pods in Rows and
	// Waiting.
	ReadyOnly, NotReadyOnly string
	// Histograms shows the distribution of each stage's duration. ByStage is the kubectl tide
	// command that prints the same distribution.
	Histograms []stageHistogram
	ByStage    string
}

// stageKey is an entry in the legend of a chart. It explains the color of a start-up stage, or of a
// class of nodes on the node map.
type stageKey struct {
	Number int
	Text   string
}

// startupRow is a table row that shows the start-up of a pod.
type startupRow struct {
	view.Startup
	Key, Href string
	Took      string
	Stage, Of string
	Cause     string
	Segments  []segment
	Chosen    bool
	Again     shownTime // time at which the pod became ready again
}

// notReadyRow shows a group of pods of the same workload that are not ready for the same reason.
type notReadyRow struct {
	view.NotReady
	Key, Href   string // key and link of the pod that has been waiting the longest
	Stage       string
	Cause, Took string
	Chosen      bool
}

// sinces lists the periods into the past that the user can select. The duration 0 means no limit.
var sinces = []struct {
	text string
	time.Duration
}{{"15m", 15 * time.Minute}, {"1h", time.Hour}, {"24h", 24 * time.Hour}, {"all", 0}}

// startups computes the start-ups of the pods that match the page's filters.
type startups struct {
	now     time.Time
	local   *time.Location
	address address
	links   links
	pods    []*corev1.Pod
	// events returns the events about the given object, or the reason why they are unknown.
	// noEvents is the first such reason, or "" if there is none.
	events   func(ObjectRef) (events []corev1.Event, unknown string)
	noEvents string
	// known caches the results of the method within, keyed by its argument.
	known map[time.Duration][]view.Startup
}

// explain sets the causes of a start-up's waits from the events about its pod.
func (u *startups) explain(s *view.Startup) {
	events, unknown := u.events(ObjectRef{Kind: "Pod", Namespace: s.Namespace, Name: s.Pod, UID: typesUID(s.UID)})
	u.noEvents = cmp.Or(u.noEvents, unknown)
	s.Explain(events)
}

// podsPage builds the page about pod start-ups.
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
		d.Stages = append(d.Stages, stageKey{i, view.StageText(name)})
	}
	all := starts.within(since.Duration)
	if len(all) > 0 {
		summary := view.SummaryOf(all)
		d.Summary, d.Median, d.Worst = &summary, view.FormatLength(view.Seconds(summary.MedianSeconds)), view.FormatLength(view.Seconds(summary.Worst.Seconds))
	}
	d.Histograms = stageHistogramsOf(all)
	d.addWaiting(starts, all)
	ready := slices.DeleteFunc(slices.Clone(all), func(s view.Startup) bool { return !s.Ready })
	d.Rows = starts.rows(view.Slowest(ready, mostStartups), mostExplained)
	if d.NoEvents = starts.noEvents; d.NoEvents == "" {
		d.NoCause = noCauseText(d.Rows)
	}
	if key := a.get("pod"); key != "" {
		d.Pod = starts.panel(key)
	}
	command := a.listOf("pods", "slow")
	if since.Duration > 0 {
		command = append(command, "--since", since.text)
	}
	with := func(flag string) string { return r.frame.links.command(append(slices.Clone(command), flag)) }
	d.ByStage, d.ReadyOnly, d.NotReadyOnly = with("--by-stage"), with("--ready"), with("--ready=false")
	slowest := view.Slowest(all, mostStartups)
	return &page{title: "Start-up", template: "pods", data: d, json: slowest, command: command, unknown: r.snapshot.unknown(podsKinds...)}, nil
}

// addWaiting adds the pods that are not ready, grouped by workload and by the reason why the pods
// wait.
func (d *startupData) addWaiting(starts *startups, all []view.Startup) {
	groups := view.NotReadyIn(all)
	for i := range groups {
		g := &groups[i]
		d.NotReady += g.Pods
		if i >= mostNotReady {
			d.MoreWaiting++
			continue
		}
		if i < mostExplained && g.Cause() == "" {
			starts.explain(&g.Longest)
		}
		row := notReadyRow{NotReady: *g, Key: g.Namespace + "/" + g.Longest.Pod, Stage: view.StageText(g.Stage), Cause: g.Cause(), Took: view.FormatLength(view.Seconds(g.Longest.Seconds))}
		row.Href, row.Chosen = "/pods"+starts.address.with("pod", row.Key), starts.address.get("pod") == row.Key
		d.Waiting = append(d.Waiting, row)
	}
}

// noCauseText describes the usual causes of waiting in the slowest stages of rows without a cause.
// It returns "" if all rows have a cause.
func noCauseText(rows []startupRow) string {
	var stages []string
	for i := range rows {
		if rows[i].Cause != "" || rows[i].Slowest == nil {
			continue
		}
		text := rows[i].Stage + " usually waits for " + view.StageMeaning(rows[i].Slowest.Stage)
		if !slices.Contains(stages, text) {
			stages = append(stages, text)
		}
	}
	if len(stages) == 0 {
		return ""
	}
	slices.Sort(stages)
	return "Where nothing is named, neither the pod nor its events say what it waited for: " + strings.Join(stages, "; ") + "."
}

// within returns the start-ups of the pods that match the page's filters and were created within
// the period `since` before now; 0 means at any time. It omits terminated pods.
func (u *startups) within(since time.Duration) []view.Startup {
	if list, known := u.known[since]; known {
		return list
	}
	chosen := u.created(since)
	list := make([]view.Startup, 0, len(chosen))
	for _, pod := range chosen {
		if s := view.StartupOf(pod, nil, u.now); !s.Ended {
			list = append(list, s)
		}
	}
	u.known[since] = list
	return list
}

// created returns the pods that match the page's filters and were created within the period `since`
// before now; 0 means at any time.
func (u *startups) created(since time.Duration) []*corev1.Pod {
	var chosen []*corev1.Pod
	for _, pod := range u.pods {
		if u.address.shows(pod.Namespace) && (since == 0 || pod.CreationTimestamp.After(u.now.Add(-since))) && u.address.matches(pod.Namespace+"/"+pod.Name) {
			chosen = append(chosen, pod)
		}
	}
	return chosen
}

// slowest returns rows for the `top` pods that took the longest to become ready, and the number of
// pods that are not ready. To save time, it computes a complete start-up only if a pod may be among
// the slowest.
func (u *startups) slowest(since time.Duration, top int) (rows []startupRow, notReady int) {
	var list []view.Startup
	for _, pod := range u.created(since) {
		ready, ended, seconds := view.ReadyAfter(pod)
		if !ready && !ended {
			notReady++
		}
		// The pods are sorted by namespace and name, like equally slow start-ups.
		if !ready || ended || len(list) == top && seconds <= list[top-1].Seconds {
			continue
		}
		list = view.Slowest(append(list, view.StartupOf(pod, nil, u.now)), top)
	}
	return u.rows(list, 0), notReady
}

// rows returns table rows for start-ups, with bars on a common scale. It reads events only for the
// first `explained` rows.
func (u *startups) rows(list []view.Startup, explained int) []startupRow {
	longest := int64(1)
	for _, s := range list {
		longest = max(longest, s.Seconds)
	}
	rows := []startupRow{}
	for i := range list {
		s := &list[i]
		if i < explained && s.Slowest != nil && !s.Slowest.Known {
			u.explain(s)
		}
		row := startupRow{Startup: *s, Key: s.Namespace + "/" + s.Pod, Took: view.FormatLength(view.Seconds(s.Seconds)), Stage: "–", Of: "–", Segments: segmentsOf(s, longest)}
		if !s.ReadyAgain.IsZero() {
			row.Again = moment(s.ReadyAgain, u.now, u.local)
		}
		row.Href, row.Chosen = "/pods"+u.address.with("pod", row.Key), u.address.get("pod") == row.Key
		if s.Slowest != nil {
			row.Stage, row.Of = view.StageText(s.Slowest.Stage), view.FormatLength(view.Seconds(s.Slowest.Seconds))
			if s.Slowest.Known {
				row.Cause = s.Slowest.Cause
			}
		}
		rows = append(rows, row)
	}
	return rows
}

// podPanel is the data of the panel with a pod's start-up.
type podPanel struct {
	view.Startup
	Close   string
	Command string
	// NoEvents explains why the events about the pod are unknown.
	NoEvents string
	Took     string
	Created  shownTime
	Again    shownTime // time at which the pod became ready again
	Stages   []stageRow
}

// stageRow shows a stage in the waterfall chart of a pod's start-up.
type stageRow struct {
	Text, At, Took, WaitedFor string
	Bar                       segment
	Done, Slowest, Estimated  bool
}

// panel returns the panel with a pod's start-up. key is namespace/name. It returns nil if the pod
// does not exist, or is in a namespace that the page does not show.
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
	events, noEvents := u.events(ObjectRef{Kind: "Pod", Namespace: namespace, Name: name, UID: found.UID})
	s := view.StartupOf(found, events, u.now)
	p := &podPanel{
		Startup: s, NoEvents: noEvents, Close: u.address.with("pod", ""), Took: view.FormatLength(view.Seconds(s.Seconds)),
		Created: timeText(s.Created, u.local, term.Moment(s.Created, u.now, u.local)+" "+term.Zone(s.Created, u.local)),
		Command: u.links.command([]string{"pods", "timeline", name, "-n", namespace}),
	}
	if !s.ReadyAgain.IsZero() {
		p.Again = moment(s.ReadyAgain, u.now, u.local)
	}
	bars := segmentsOf(&s, max(1, s.Seconds))
	for i, stage := range s.Stages {
		row := stageRow{
			Text: view.StageText(stage.Name), At: stage.Start.Add(view.Seconds(stage.Seconds)).In(u.local).Format(time.TimeOnly),
			Took: view.FormatLength(view.Seconds(stage.Seconds)), WaitedFor: stage.WaitedFor, Bar: bars[i], Done: stage.Done, Estimated: stage.Estimated,
			Slowest: s.Slowest != nil && s.Slowest.Stage == stage.Name,
		}
		if !stage.Done {
			row.At, row.Took = "–", row.Took+" so far"
		}
		row.WaitedFor = cmp.Or(row.WaitedFor, "–")
		p.Stages = append(p.Stages, row)
	}
	return p
}
