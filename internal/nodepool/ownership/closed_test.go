// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package ownership

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"

	"tidekeeper.dev/tidekeeper/internal/nodepool/setting"
)

// TestClosedFormat checks the stored format of the times at which a node was closed. Like the JSON in
// TestRecordFormat, it must never change.
func TestClosedFormat(t *testing.T) {
	const text = `{"gpu":{"closed":{"example.com/gpu":"2026-03-29T01:30:00Z"}},` +
		`"worker":{"taints":{"dedicated:NoSchedule":"worker"},"closed":{"dedicated":"2026-03-29T01:30:07Z","other":"2026-03-29T01:30:00Z"}}}`
	at := time.Date(2026, time.March, 29, 1, 30, 0, 0, time.UTC)
	closed := Closed{}.With("gpu", "example.com/gpu", at.In(time.FixedZone("", 3600))).
		With("worker", "dedicated", at.Add(7*time.Second+time.Millisecond)).With("worker", "other", at)
	record := Record{"gpu": {}, "worker": {setting.TaintKey("dedicated", corev1.TaintEffectNoSchedule): "worker"}}
	if diff := cmp.Diff(text, record.Text(closed)); diff != "" {
		t.Errorf("Text (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(closed, ParseClosed(text)); diff != "" {
		t.Errorf("ParseClosed (-want +got):\n%s", diff)
	}
	got, err := Parse(text)
	if diff := cmp.Diff(record, got); diff != "" || err != nil {
		t.Errorf("Parse: %v (-want +got):\n%s", err, diff)
	}
}

func TestParseClosed(t *testing.T) {
	for name, tc := range map[string]struct {
		text string
		want Closed
	}{
		"no annotation":                   {"", nil},
		"not JSON":                        {"{", nil},
		"without times":                   {`{"worker":{"taints":{"a:NoExecute":""}}}`, nil},
		"null":                            {`{"worker":null,"gpu":{"closed":null}}`, nil},
		"a time that cannot be read":      {`{"worker":{"closed":{"a":"yesterday","b":"2026-01-01T00:00:00+01:00"}}}`, Closed{}.With("worker", "b", time.Date(2025, time.December, 31, 23, 0, 0, 0, time.UTC))},
		"a time before the year 0 in UTC": {`{"worker":{"closed":{"a":"0000-01-01T00:00:00+01:00"}}}`, Closed{}.With("worker", "a", time.Date(-1, time.December, 31, 23, 0, 0, 0, time.UTC))},
	} {
		t.Run(name, func(t *testing.T) {
			got := ParseClosed(tc.text)
			if diff := cmp.Diff(tc.want, got, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			record, err := Parse(tc.text)
			if err == nil && (len(record["worker"]) == 0 && record["worker"] != nil) != (len(got["worker"]) > 0) {
				t.Errorf("the record is %v", record)
			}
		})
	}
}
