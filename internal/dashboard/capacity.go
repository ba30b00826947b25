// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package dashboard

import (
	"errors"
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"tidekeeper.dev/tidekeeper/internal/capacity"
	"tidekeeper.dev/tidekeeper/internal/resources"
	"tidekeeper.dev/tidekeeper/internal/view"
)

// whatIf is the data of the page about copies that fit, and losses.
type whatIf struct {
	Problems []string
	// NoRoom explains why the room in the cluster is unknown.
	NoRoom string
	Fields []field
	// Like is the selected workload, and Workloads are the workloads that can be selected.
	Like      string
	Workloads []string
	Mistake   string
	// Lacks names parts of the workload that are not evaluated.
	Lacks    string
	Requests string
	Fits     []fitRow
	AtMost   string
	Losses   []lossRow
	Pending  []pendingRow
	Total    int // the number of pending pods
}

// field is an input field of the form.
type field struct {
	Name, Label, Value, Example string
	// Off is set if the field shows a request of a workload, and cannot be edited.
	Off      bool
	resource corev1.ResourceName
	flag     string
}

// formFields are the fields for the requests of a copy, with the flags of the equivalent command.
var formFields = []field{
	{Name: "cpu", Label: "CPU", Example: "500m", resource: corev1.ResourceCPU, flag: "--cpu"},
	{Name: "memory", Label: "Memory", Example: "2Gi", resource: corev1.ResourceMemory, flag: "--memory"},
	{Name: "gpu", Label: "GPU", Example: "1", resource: "nvidia.com/gpu", flag: "--gpu"},
	{Name: "request", Label: "Other", Example: "ephemeral-storage=10Gi", flag: "--request"},
}

// Initial requests of the form.
const (
	firstCPU    = "1"
	firstMemory = "2Gi"
)

// fitRow is a row of the table of copies that fit into each pool.
type fitRow struct {
	view.PoolFit
	Text, LimitedBy, Refused, Href string
	Is                             view.Severity
}

// lossRow is a row of the table of losses.
type lossRow struct {
	view.PoolLoss
	Homeless                 int
	Text, Workloads, Request string
	AtMost                   string
	Is                       view.Severity
}

func lossRowOf(l view.PoolLoss) lossRow {
	row := lossRow{PoolLoss: l, Homeless: l.Homeless(), Text: l.LostText(), Workloads: view.WithoutPlaceText(l.WithoutPlace), Request: "-", AtMost: strings.Join(l.AtMost, ", "), Is: view.Good}
	if row.Homeless > 0 {
		row.Is, row.Request = view.Bad, resources.Text(l.Requests)
	}
	return row
}

// pendingRow is a row of the table of pending pods: a group of similar pods.
type pendingRow struct {
	view.PendingGroup
	Count              int
	Workload, Requests string
	In                 []pendingIn
}

type pendingIn struct {
	view.PendingIn
	Text, Why string
	Is        view.Severity
}

func pendingRows(room *view.Room) []pendingRow {
	var rows []pendingRow
	for _, g := range room.Pending() {
		row := pendingRow{PendingGroup: g, Count: len(g.Pods), Workload: g.WorkloadText(), Requests: resources.Text(g.Requests)}
		for _, in := range g.Pools {
			text, severity := in.AnswerText()
			row.In = append(row.In, pendingIn{in, text, view.CountsText(in.Refused), severity})
		}
		rows = append(rows, row)
	}
	return rows
}

// capacityPage builds the page about copies that fit, and losses.
func capacityPage(r *request) (*page, error) {
	s := r.snapshot
	d := &whatIf{Problems: s.problemsOf(capacityKinds...), NoRoom: s.problem(capacityKinds...)}
	pod, command, err := d.ask(r.address, r.asks.podLike)
	if err != nil {
		d.Mistake = err.Error()
	}
	p := &page{title: "What if", template: "capacity", data: d, json: []view.PoolFit{}, command: command, unknown: s.unknown(capacityKinds...)}
	if pod != nil {
		d.Requests = resources.TextOfRequests(capacity.RequestsOf(pod))
	}
	room := r.room()
	if room == nil {
		return p, nil
	}
	d.Workloads = workloadNames(r.snapshot.pods(), r.address)
	if pod != nil {
		fits := room.Fit(pod, d.Like == "")
		p.json = fits
		for _, fit := range fits {
			row := fitRow{PoolFit: fit, Text: fit.CopiesText(), LimitedBy: view.CountsText(fit.LimitedBy), Refused: view.CountsText(fit.Refused), Href: r.frame.links.pool(fit.Pool), Is: view.Good}
			if fit.Copies == 0 {
				row.Is = severityOfNone(&fit)
			}
			d.AtMost = strings.Join(fit.AtMost, ", ")
			d.Fits = append(d.Fits, row)
		}
	}
	for _, loss := range r.losses() {
		d.Losses = append(d.Losses, lossRowOf(loss))
	}
	slices.SortStableFunc(d.Losses, func(a, b lossRow) int { return b.Homeless - a.Homeless })
	d.Pending = pendingRows(room)
	for _, row := range d.Pending {
		d.Total += row.Count
	}
	return p, nil
}

// severityOfNone is the severity of a pool that takes no copy: a full pool, or one with smaller nodes, lacks
// something, and a pool that excludes the pod does not.
func severityOfNone(fit *view.PoolFit) view.Severity {
	if fit.OnEmptyNode > 0 || slices.ContainsFunc(fit.Refused, func(c capacity.Count) bool { return c.TooSmall }) {
		return view.Warning
	}
	return view.Neutral
}

// ask returns the pod that the form describes, nil if the form is empty, and the equivalent command. podLike
// reads a copy of the pods of a workload.
func (d *whatIf) ask(a address, podLike func(likeName) podOfLike) (*corev1.Pod, []string, error) {
	if d.Like = strings.TrimSpace(a.get("like")); d.Like != "" {
		return d.askLike(a.namespace, podLike)
	}
	requests, command, err := d.read(a.query)
	if err != nil || len(requests) == 0 {
		return nil, command, err
	}
	return view.PodOf(requests), command, nil
}

// read parses the amounts in the form.
func (d *whatIf) read(query url.Values) (corev1.ResourceList, []string, error) {
	d.Fields = slices.Clone(formFields)
	asked := false
	for _, f := range formFields {
		asked = asked || query.Has(f.Name)
	}
	if !asked {
		query = url.Values{"cpu": {firstCPU}, "memory": {firstMemory}}
	}
	requests, command := corev1.ResourceList{}, []string{"pools", "fit"}
	var mistake error
	for i := range d.Fields {
		f := &d.Fields[i]
		if f.Value = strings.TrimSpace(query.Get(f.Name)); f.Value == "" {
			continue
		}
		command = append(command, f.flag, f.Value)
		if err := f.addTo(requests); err != nil && mistake == nil {
			mistake = err
		}
	}
	if mistake == nil && len(command) == 2 {
		mistake = errNothingAsked
	}
	if mistake != nil {
		return nil, command, mistake
	}
	return requests, command, nil
}

// errNothingAsked is the error for a form without amounts, as for its command without flags.
var errNothingAsked = errors.New("write an amount that a copy requests, or a workload")

// anExponent is the end of an amount with a power of ten. Powers of more digits take too long to parse.
var anExponent = regexp.MustCompile(`[0-9.][eE][+-]?[0-9]{1,2}$`)

// longestAmount is the maximum length of an amount: longer texts take too long to parse.
const longestAmount = 40

// addTo adds the amount of a field to the requests.
func (f *field) addTo(requests corev1.ResourceList) error {
	name, text := f.resource, f.Value
	if name == "" {
		left, right, found := strings.Cut(text, "=")
		if !found || left == "" {
			return fmt.Errorf("%s: write RESOURCE=AMOUNT, such as %s", f.Label, f.Example)
		}
		name, text = corev1.ResourceName(left), right
	}
	if len(text) > longestAmount || strings.ContainsAny(text, "eE") && !strings.HasSuffix(text, "E") && !strings.HasSuffix(text, "Ei") && !anExponent.MatchString(text) {
		return fmt.Errorf("%s: write an amount such as %s", f.Label, f.Example)
	}
	amount, err := resource.ParseQuantity(text)
	if err != nil || amount.Sign() < 0 {
		return fmt.Errorf("%s: write an amount such as %s", f.Label, f.Example)
	}
	if _, twice := requests[name]; twice {
		return fmt.Errorf("%s: %s is requested already", f.Label, name)
	}
	requests[name] = amount
	return nil
}
