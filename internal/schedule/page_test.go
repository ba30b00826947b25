// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package schedule

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	robfig "github.com/robfig/cron/v3"
)

const page = "cronjob.md"

// TestPage checks each row of the documentation page's table against this package and against the
// library that Kubernetes' CronJob controller uses, so that the page cannot become outdated.
func TestPage(t *testing.T) {
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	_, table, _ := strings.Cut(string(text), "\n| Situation ")
	table, _, _ = strings.Cut(table, "\n\n")
	rows := strings.Split(table, "\n")[2:] // The first two lines are the header and its separator.
	if len(rows) < 30 {
		t.Fatalf("the table of %s has %d rows: does it still have its header?", page, len(rows))
	}
	agree := map[string]int{}
	for _, row := range rows {
		cells := strings.Split(strings.Trim(row, "| "), "|")
		if len(cells) != 7 {
			t.Errorf("%d columns instead of 7: %s", len(cells), row)
			continue
		}
		for i, cell := range cells {
			cells[i] = strings.TrimSpace(cell)
		}
		cells[1] = strings.Trim(cells[1], "`")
		expression, zone, after := cells[1], cells[2], mustTime(t, cells[3])
		want := append([]string{}, cells[:4]...)
		want = append(want, ours(expression, zone, after), theirs(expression, zone, after), "no")
		if want[4] == want[5] {
			want[6] = "yes"
		}
		agree[want[6]]++
		if diff := cmp.Diff(want, cells); diff != "" {
			t.Errorf("%s: %s does not match the behaviour (-actual +page):\n%s\nThe row should be:\n| %s | `%s` | %s |", page, cells[0], diff,
				want[0], want[1], strings.Join(want[2:], " | "))
		}
	}
	if agree["yes"] < 5 || agree["no"] < 5 {
		t.Errorf("rows that agree and rows that do not: %v, want several of both", agree)
	}
}

func ours(expression, zone string, after time.Time) string {
	s, err := Parse(expression, zone)
	if err != nil {
		return "refused"
	}
	return ticks(zone, after, func(t time.Time) time.Time {
		next, _ := s.Next(t)
		return next
	})
}

// theirs computes ticks like formatSchedule and mostRecentScheduleTime of the CronJob controller
// (k8s.io/kubernetes v1.36.3, pkg/controller/cronjob): robfig/cron parses the expression with the
// zone as a prefix, and returns one tick after another.
func theirs(expression, zone string, after time.Time) (answer string) {
	defer func() {
		if recover() != nil {
			answer = "panic"
		}
	}()
	if zone != "" && !strings.Contains(expression, "TZ") {
		expression = fmt.Sprintf("TZ=%s %s", zone, expression)
	}
	s, err := robfig.ParseStandard(expression)
	if err != nil {
		return "refused"
	}
	return ticks(zone, after, s.Next)
}

// ticks formats the first three ticks after a time, on the zone's clock.
func ticks(zone string, after time.Time, next func(time.Time) time.Time) string {
	location, err := time.LoadLocation(zone)
	if err != nil {
		return "refused"
	}
	var texts []string
	for at := after.UTC(); len(texts) < 3; {
		at = next(at)
		if at.IsZero() {
			return strings.Join(append(texts, "never"), ", ")
		}
		texts = append(texts, at.In(location).Format(layout))
	}
	return strings.Join(texts, ", ")
}
