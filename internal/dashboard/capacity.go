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

// whatIf is the data of the capacity page: how many copies of a pod fit, the effects of losing
// nodes or zones, and the pending pods.
type whatIf struct {
	Problems []string
	// NoRoom explains why the free capacity of the cluster is unknown. It is "" if the capacity is
	// known.
	NoRoom string
	Fields []field
	// Like is the workload that the user entered, or "" if the user entered amounts or nothing. The
	// page evaluates copies of a pod of this workload. Workloads lists the workloads that the input
	// field suggests.
	Like      string
	Workloads []string
	Mistake   string
	// Lacks explains which defaults the API server did not set on the pod that is derived from the
	// workload in Like. It is "" if the API server set all defaults.
	Lacks    string
	Requests string
	Fits     []fitRow
	// NewNodes is set if a pool has a nodeTemplate.
	NewNodes bool
	AtMost   string
	Losses   []lossRow
	Sequence *sequence
	Pending  []pendingRow
	Total    int // number of pending pods
}

// field is an input field of the form on the capacity page.
type field struct {
	Name, Label, Value, Example string
	// Off is set if the input field cannot be edited, because it shows a request of the selected
	// workload.
	Off      bool
	resource corev1.ResourceName
	flag     string
}

// formFields lists the input fields for the resource requests of a copy of a pod, each with the
// flag of the equivalent command `kubectl tide pools fit`.
var formFields = []field{
	{Name: "cpu", Label: "CPU", Example: "500m", resource: corev1.ResourceCPU, flag: "--cpu"},
	{Name: "memory", Label: "Memory", Example: "2Gi", resource: corev1.ResourceMemory, flag: "--memory"},
	{Name: "gpu", Label: "GPU", Example: "1", resource: "nvidia.com/gpu", flag: "--gpu"},
	{Name: "request", Label: "Other", Example: "ephemeral-storage=10Gi", flag: "--request"},
}

// Resource requests with which the form on the capacity page is filled in when the page is opened.
const (
	firstCPU    = "1"
	firstMemory = "2Gi"
)

// fitRow is a table row that shows how many copies of a pod fit into a pool.
type fitRow struct {
	view.PoolFit
	Text, LimitedBy, Refused, Href string
	Is                             view.Severity
}

// lossRow is a table row that shows the effect of losing a node or zone.
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

// pendingRow is a table row that shows a group of similar pending pods, and for each pool whether
// the pods fit into it.
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

// capacityPage builds the capacity page.
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
	room, losses := r.model.parts()
	if d.Sequence = sequenceOf(r.address, room, r.frame.links); room == nil {
		return p, nil
	}
	d.Workloads = workloadNames(r.snapshot.pods(), r.address)
	if pod != nil {
		fits := room.Fit(pod, d.Like == "", 0)
		p.json = fits
		var uncertain []string
		for _, fit := range fits {
			row := fitRow{PoolFit: fit, Text: fit.CopiesText(), LimitedBy: view.CountsText(fit.LimitedBy), Refused: view.CountsText(fit.Refused), Href: r.frame.links.pool(fit.Pool), Is: view.Good}
			if fit.Copies == 0 {
				row.Is = severityOfNone(&fit)
			}
			d.NewNodes = d.NewNodes || fit.NewNode != nil
			uncertain = append(uncertain, fit.AtMost...)
			d.Fits = append(d.Fits, row)
		}
		slices.Sort(uncertain)
		d.AtMost = strings.Join(slices.Compact(uncertain), ", ")
	}
	for _, loss := range losses {
		d.Losses = append(d.Losses, lossRowOf(loss))
	}
	slices.SortStableFunc(d.Losses, func(a, b lossRow) int { return b.Homeless - a.Homeless })
	d.Pending = pendingRows(room)
	for _, row := range d.Pending {
		d.Total += row.Count
	}
	return p, nil
}

// severityOfNone returns the severity to show for a pool into which no copy of the pod fits. The
// severity is Warning if the pool is full or its nodes are too small. It is Neutral if the pool
// excludes the pod, for example by a taint.
func severityOfNone(fit *view.PoolFit) view.Severity {
	if fit.OnEmptyNode > 0 || slices.ContainsFunc(fit.Refused, func(c capacity.Count) bool { return c.TooSmall }) {
		return view.Warning
	}
	return view.Neutral
}

// ask returns the pod that the user described in the form of the capacity page, and the equivalent
// kubectl tide command. It returns an error if the form is empty or invalid, or if the workload
// could not be read. The function podLike returns a pod with the properties of the named workload's
// pods.
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

// read parses the resource amounts that the user entered on the capacity page. It returns the
// amounts as the requests of a pod, and the equivalent kubectl tide command.
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

// errNothingAsked is the error if the form on the capacity page is empty. The user must enter a
// resource amount or a workload.
var errNothingAsked = errors.New("write an amount that a copy requests, or a workload")

// anExponent matches the end of a resource amount with a decimal exponent of at most two digits. An
// amount with a longer exponent is rejected, because it takes too long to parse.
var anExponent = regexp.MustCompile(`[0-9.][eE][+-]?[0-9]{1,2}$`)

// longestAmount is the maximum length of a resource amount. Longer strings take too long to parse.
const longestAmount = 40

// addTo parses the resource amount in the input field, and adds it to the requests of a pod.
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
