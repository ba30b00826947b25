// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package pods

import (
	"encoding/json"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"

	"tidekeeper.dev/tidekeeper/internal/cli/cmdutil"
	"tidekeeper.dev/tidekeeper/internal/pods/podwatch"
	"tidekeeper.dev/tidekeeper/internal/term"
	"tidekeeper.dev/tidekeeper/internal/view"
)

// podLines prints the transitions of watched pods as table rows or as JSON.
type podLines struct {
	*cmdutil.Env
	namespaces bool
	asJSON     bool

	mu     sync.Mutex
	header bool // set once the header has been printed
	layout *term.Layout
}

func newPodLines(e *cmdutil.Env, namespaces, asJSON bool) *podLines {
	p := &podLines{Env: e, namespaces: namespaces, asJSON: asJSON}
	return p
}

// report prints a message about the watch of pods to stderr.
func (p *podLines) report(text string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.Console.Note(text)
}

// began prints the number of pods at the start of the watch, and how many of them are not ready.
func (p *podLines) began(pods, unready int) {
	switch {
	case pods == 0:
		p.report("No such pods yet: waiting for them. Press Ctrl-C to stop.")
	case unready == 0:
		p.report("Watching " + term.Plural(pods, "pod") + ", all ready.")
	default:
		p.report(fmt.Sprintf("Watching %s, %d not ready.", term.Plural(pods, "pod"), unready))
	}
}

func (p *podLines) print(t podwatch.Transition) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.asJSON {
		return json.NewEncoder(p.Console.Out).Encode(t)
	}
	line := p.table(t)
	layout := line.Layout(p.Console.Screen, p.layout)
	if err := line.WriteLayout(p.Console.Out, p.Console.Screen, layout); err != nil {
		return err
	}
	p.header, p.layout = true, layout
	return nil
}

// table returns a table with a single row for the transition. The columns have minimum widths,
// because rows that were already printed cannot be realigned. The column POD is wide enough for the
// pods of a typical Deployment.
func (p *podLines) table(t podwatch.Transition) *term.Table {
	text, color := state(t)
	line := &term.Table{
		NoHeader: p.header,
		Columns: []term.Column{
			{Header: "TIME (" + term.Zone(t.Seen, p.Local) + ")"}, {Header: "POD", Name: true, Least: len("web-7d8f9c6b5d-x2v9p")}, {Header: "WHAT", Least: len(corev1.PodReadyToStartContainers)},
			{Header: "STATE", Least: len("Pending to Running")}, {Header: "WHY", Text: 20},
		},
		Rows: [][]term.Cell{{term.Text(clockText(t, p.Local)), term.Text(t.Pod), term.Text(subject(t)), term.Painted(color, text), term.Text(cause(t))}},
	}
	if p.namespaces {
		line.Columns = append([]term.Column{{Header: "NAMESPACE", Name: true}}, line.Columns...)
		line.Rows[0] = append([]term.Cell{term.Text(t.Namespace)}, line.Rows[0]...)
	}
	return line
}

// clockText formats the time of a transition. It includes the date if the plugin received the
// transition on another day. If the time is unknown, it formats the time of receipt instead, with
// the prefix ~.
func clockText(t podwatch.Transition, in *time.Location) string {
	seen := t.Seen.In(in)
	if t.Time.IsZero() {
		return "~" + seen.Format(time.TimeOnly)
	}
	at := t.Time.In(in)
	if term.DaysBetween(seen, at) != 0 {
		return at.Format(time.DateTime)
	}
	return " " + at.Format(time.TimeOnly)
}

// subject names the part of the pod that a transition changed, such as a condition or container.
func subject(t podwatch.Transition) string {
	switch t.Kind {
	case podwatch.Condition:
		return t.Name
	case podwatch.Container:
		return "container " + t.Name
	case podwatch.Event:
		return "event"
	default:
		return string(t.Kind)
	}
}

// state describes the pod's state after a transition, and returns the color in which to print it.
func state(t podwatch.Transition) (string, term.Color) {
	state, h := t.To, term.Plain
	if state == "" && (t.Kind == podwatch.Condition || t.Kind == podwatch.Container) {
		state = "gone"
	}
	switch {
	case t.Kind == podwatch.Phase && t.From != "":
		state = t.From + " to " + t.To
	case t.Kind == podwatch.Deleted && t.From != "":
		state = "was " + t.From
	case t.Kind == podwatch.Event:
		state = t.Reason
	}
	switch {
	case t.Kind == podwatch.Phase && t.To == "Failed", t.Kind == podwatch.Container && t.To == podwatch.Terminated && t.Reason != "Completed":
		h = term.Red
	case t.Kind == podwatch.Condition && t.To == "True", t.Kind == podwatch.Phase && t.To == "Running":
		h = term.Green
	case t.Kind == podwatch.Condition, t.To == podwatch.Waiting, t.Type == corev1.EventTypeWarning:
		h = term.Yellow
	}
	if t.Repeated {
		state += " again"
	}
	return state, h
}

// cause returns the reason and message of a transition, or details such as the node of a scheduled
// pod.
func cause(t podwatch.Transition) string {
	why := view.ReasonAndMessage(t.Reason, t.Message)
	switch {
	case t.Kind == podwatch.Event && t.Count > 1:
		why = fmt.Sprintf("%s (x%d)", t.Message, t.Count)
	case t.Kind == podwatch.Event:
		why = t.Message
	case t.Kind == podwatch.Condition && t.Name == "PodScheduled" && t.To == "True" && why == "":
		why = "on " + t.Node
	case t.Kind == podwatch.Container && t.Restarts > 0 && t.To == podwatch.Running:
		why = term.Plural(int(t.Restarts), "restart")
	}
	return why
}
