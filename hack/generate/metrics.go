// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/prometheus/client_golang/prometheus"

	"tidekeeper.dev/tidekeeper/internal/manager"
)

// metrics returns the page that documents the metrics.
func metrics() (string, error) {
	r := rows{}
	if err := manager.RegisterMetrics(r); err != nil {
		return "", err
	}
	var b strings.Builder
	b.WriteString("# Metrics\n\n" + notice)
	b.WriteString("What Tidekeeper adds to the metrics of controller-runtime (`controller_runtime_*`, `workqueue_*`,\n" +
		"`rest_client_*`, `leader_election_*`), of Go (`go_*`) and of the process (`process_*`).\n\n" +
		"| metric | type | labels | |\n|---|---|---|---|\n")
	for _, name := range slices.Sorted(maps.Keys(r)) {
		b.WriteString(r[name])
	}
	return b.String(), nil
}

// rows is a Prometheus registry that maps the name of each registered metric to its row in the
// table.
type rows map[string]string

// described parses the string form of a metric's description, because the client library provides
// no other access to its parts.
var described = regexp.MustCompile(`^Desc\{fqName: ("(?:[^"\\]|\\.)*"), help: ("(?:[^"\\]|\\.)*"), unit: "[^"]*", constLabels: \{.*\}, variableLabels: \{(.*)\}\}$`)

// Register implements [prometheus.Registerer].
func (r rows) Register(c prometheus.Collector) error {
	kind := "gauge"
	switch c.(type) {
	case *prometheus.CounterVec, prometheus.Counter:
		// A gauge also implements the interface of a counter.
		if _, gauge := c.(prometheus.Gauge); !gauge {
			kind = "counter"
		}
	case *prometheus.HistogramVec, prometheus.Histogram:
		kind = "histogram"
	}
	descriptions := make(chan *prometheus.Desc)
	go func() {
		c.Describe(descriptions)
		close(descriptions)
	}()
	var failed error
	for d := range descriptions {
		parts := described.FindStringSubmatch(d.String())
		if parts == nil {
			failed = errors.Join(failed, fmt.Errorf("a description that cannot be read: %s", d))
			continue
		}
		name, nameErr := strconv.Unquote(parts[1])
		help, helpErr := strconv.Unquote(parts[2])
		failed = errors.Join(failed, nameErr, helpErr)
		var labels []string
		for label := range strings.SplitSeq(parts[3], ",") {
			labels = append(labels, code(label))
		}
		r[name] = fmt.Sprintf("| %s | %s | %s | %s |\n", code(name), kind, strings.Join(labels, ", "), cell(help))
	}
	return failed
}

// MustRegister implements [prometheus.Registerer].
func (r rows) MustRegister(collectors ...prometheus.Collector) {
	for _, c := range collectors {
		if err := r.Register(c); err != nil {
			panic(err)
		}
	}
}

// Unregister implements [prometheus.Registerer].
func (rows) Unregister(prometheus.Collector) bool { return false }
