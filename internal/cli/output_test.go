// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"errors"
	"fmt"
	"math"
	"net/http"
	"net/url"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

func TestTable(t *testing.T) {
	rows := [][]cell{
		{{"web", plain}, {"Succeeded", green}, {"a message that is long", plain}},
		{{"咖啡店", plain}, {"", plain}, {"wide ☕ characters", plain}},
		{{"e\u0301te\u0301", plain}, {"x", plain}, {"evil\x1b[31m\nline\u202e", plain}},
	}
	header := []string{"NAME", "OUTCOME", "MESSAGE"}
	for _, tc := range []struct {
		name   string
		screen screen
		want   []string
	}{
		{"a pipe", screen{}, []string{
			"NAME     OUTCOME     MESSAGE",
			"web      Succeeded   a message that is long",
			"咖啡店               wide ☕ characters",
			"e\u0301te\u0301      x           evil[31m line",
		}},
		{"a narrow terminal", screen{terminal: true, width: 32}, []string{
			"NAME     OUTCOME     MESSAGE",
			"web      Succeeded   a message …",
			"咖啡店               wide ☕ ch…",
			"e\u0301te\u0301      x           evil[31m l…",
		}},
		{"a very narrow terminal", screen{terminal: true, width: 20}, []string{
			"NAME     OUTCO…   MESSA…",
			"web      Succe…   a mes…",
			"咖啡店            wide …",
			"e\u0301te\u0301      x        evil[…",
		}},
		{"colours", screen{terminal: true, width: 80, color: true}, []string{
			"NAME     OUTCOME     MESSAGE",
			"web      \x1b[32mSucceeded\x1b[0m   a message that is long",
			"咖啡店               wide ☕ characters",
			"e\u0301te\u0301      x           evil[31m line",
		}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var out strings.Builder
			if err := (&table{header: header, rows: rows}).writeTo(&out, tc.screen); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, strings.Split(strings.TrimSuffix(out.String(), "\n"), "\n")); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			for line := range strings.Lines(out.String()) {
				if line = strings.TrimRight(line, "\n"); tc.screen.width > 24 && !tc.screen.color && wide(line) > tc.screen.width {
					t.Errorf("%d columns in %d: %s", wide(line), tc.screen.width, line)
				}
			}
		})
	}
}

func TestBar(t *testing.T) {
	for _, tc := range []struct {
		share float64
		want  string
	}{
		{0, ""}, {-1, ""}, {math.NaN(), ""}, {0.0001, "▏"}, {0.25, "█"}, {0.5, "██"}, {0.6, "██▍"}, {0.999, "███▉"}, {1, "████"}, {7, "████"},
	} {
		if diff := cmp.Diff(tc.want, bar(tc.share, 4)); diff != "" {
			t.Errorf("%v (-want +got):\n%s", tc.share, diff)
		}
	}
}

func TestMoment(t *testing.T) {
	berlin, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		t.Fatal(err)
	}
	now := time.Date(2026, 10, 24, 23, 30, 0, 0, berlin)
	for _, tc := range []struct {
		at   time.Time
		want string
	}{
		{now, "due since today 23:30"},
		{now.Add(10 * time.Minute), "today 23:40 (in 10m)"},
		{time.Date(2026, 10, 25, 0, 0, 0, 0, berlin), "tomorrow 00:00 (in 30m)"},
		{time.Date(2026, 10, 25, 23, 30, 0, 0, berlin), "tomorrow 23:30 (in 25h)"}, // a day of 25 hours
		{time.Date(2026, 10, 26, 3, 0, 0, 0, berlin), "Mon 03:00 (in 28h)"},
		{time.Date(2026, 10, 31, 3, 0, 0, 0, berlin), "Sat 31 Oct 03:00 (in 6d4h)"},
		{time.Date(2027, 1, 1, 0, 0, 0, 0, berlin), "Fri 1 Jan 2027 00:00 (in 68d)"},
		{now.Add(-24 * time.Hour), "due since yesterday 23:30"},
	} {
		if diff := cmp.Diff(tc.want, coming(tc.at, now, berlin)); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	}
}

func TestSpan(t *testing.T) {
	for text, want := range map[string]time.Duration{
		"30m": 30 * time.Minute, "24h": 24 * time.Hour, "7d": 168 * time.Hour, "1.5d": 36 * time.Hour, "2w": 336 * time.Hour,
		"": 0, "0": 0, "-1h": 0, "d": 0, "soon": 0, "1e9d": 0, "NaNd": 0,
	} {
		var s span
		err := s.Set(text)
		if (err == nil) != (want > 0) || time.Duration(s) != want {
			t.Errorf("%q: %s, %v; want %s", text, time.Duration(s), err, want)
		}
	}
}

func TestExplainError(t *testing.T) {
	resource := schema.GroupResource{Group: "tidekeeper.dev", Resource: "scheduledrestarts"}
	unknown := apierrors.NewGenericServerResponse(http.StatusNotFound, "get", resource, "", "404 page not found", 0, true)
	refused := &url.Error{Op: "Get", URL: "https://127.0.0.1:6443/apis?x=y", Err: fmt.Errorf("dial tcp 127.0.0.1:6443: connect: %w", syscall.ECONNREFUSED)}
	for _, tc := range []struct {
		err  error
		code int
		want string
	}{
		{aboutKind(unknown, restartKind, "shop", ""), exitKindUnknown,
			"the cluster does not know the kind ScheduledRestart: install it with kubectl apply -k config/crd"},
		{aboutKind(apierrors.NewNotFound(resource, "web"), restartKind, "shop", "web"), exitNotFound,
			`there is no ScheduledRestart "web" in the namespace "shop"`},
		{apierrors.NewForbidden(resource, "", errors.New(`User "nobody" cannot list it`)), exitForbidden,
			`scheduledrestarts.tidekeeper.dev is forbidden: User "nobody" cannot list it`},
		{aboutKind(apierrors.NewNotFound(resource, "gpu"), "NodePool", "", "gpu"), exitNotFound, `there is no NodePool "gpu"`},
		{refused, exitUnreachable, "the cluster at https://127.0.0.1:6443 cannot be reached: connection refused"},
		{errors.New("schedule \"\" is empty"), exitError, `schedule "" is empty`},
	} {
		code, message := explainError(tc.err)
		if diff := cmp.Diff(fmt.Sprint(tc.code, " ", tc.want), fmt.Sprint(code, " ", message)); diff != "" {
			t.Errorf("%v (-want +got):\n%s", tc.err, diff)
		}
	}
}
