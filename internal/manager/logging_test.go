// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"
)

func TestLogLevels(t *testing.T) {
	for _, tc := range []struct {
		level string
		want  []string
	}{
		{"error", []string{"error"}},
		{"info", []string{"error", "info"}},
		{"0", []string{"error", "info"}},
		{"debug", []string{"error", "info", "debug"}},
		{"trace", []string{"error", "info", "debug", "trace"}},
		{"4", []string{"error", "info", "debug", "trace", "trace"}},
	} {
		t.Run(tc.level, func(t *testing.T) {
			var got []string
			for line := range strings.Lines(logged(t, tc.level, logFormatJSON)) {
				var entry struct{ Level string }
				if err := json.Unmarshal([]byte(line), &entry); err != nil {
					t.Fatalf("not JSON: %s", line)
				}
				got = append(got, entry.Level)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("levels logged (-want +got):\n%s", diff)
			}
		})
	}
}

func TestLogText(t *testing.T) {
	got := logged(t, "info", logFormatText)
	for _, want := range []string{"level=error", "err=broken", "pool=worker", "level=info"} {
		if !strings.Contains(got, want) {
			t.Errorf("the log does not say %q:\n%s", want, got)
		}
	}
}

// TestLongTextsAreCut checks that very long strings and errors are truncated in the log.
func TestLongTextsAreCut(t *testing.T) {
	var out bytes.Buffer
	handler, err := newLogHandler(&out, NewOptions())
	if err != nil {
		t.Fatal(err)
	}
	long := strings.Repeat("ä", 100<<10)
	logr.FromSlogHandler(handler).Error(errors.New(long), "broken", "note", long, "pool", "worker")
	if got := out.Len(); got > 3*logValueLimit || !strings.Contains(out.String(), "ä…") || !strings.Contains(out.String(), "worker") {
		t.Errorf("%d bytes are logged", got)
	}
}

// logged returns the log output for one entry at each of several levels.
func logged(t *testing.T, level, format string) string {
	t.Helper()
	opts := NewOptions()
	opts.LogLevel, opts.LogFormat = level, format
	var out bytes.Buffer
	handler, err := newLogHandler(&out, opts)
	if err != nil {
		t.Fatal(err)
	}
	log := logr.FromSlogHandler(handler)
	log.Error(errors.New("broken"), "an error", "pool", "worker")
	for _, v := range []int{0, 1, 2, 4} {
		log.V(v).Info("an entry")
	}
	return out.String()
}
