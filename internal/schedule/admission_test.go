// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package schedule

import (
	"fmt"
	"math/rand/v2"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// admitted returns the CRD's pattern with which the API server validates the five fields of a
// schedule.
func admitted(t *testing.T) *regexp.Regexp {
	t.Helper()
	crd, err := os.ReadFile("../../config/crd/bases/tidekeeper.dev_scheduledrestarts.yaml")
	if err != nil {
		t.Fatal(err)
	}
	// In YAML, quotes within a quoted string are doubled, and long lines are folded.
	text := strings.ReplaceAll(strings.Join(strings.Fields(string(crd)), " "), "''", "'")
	match := regexp.MustCompile(`self\.startsWith\('@'\) \|\| !self\.matches\('[^']*'\) \|\| self\.matches\('([^']*)'\)`).FindStringSubmatch(text)
	if match == nil {
		t.Fatal("the rule is not in the CRD")
	}
	return regexp.MustCompile(match[1])
}

// TestAdmission checks that the API server admits every schedule that can be parsed, and rejects
// numbers, names and lists that are invalid in their field.
func TestAdmission(t *testing.T) {
	pattern := admitted(t)
	for _, refused := range []string{
		"60 * * * *", "* 24 * * *", "* 25 * * *", "* * 0 * *", "* * 32 * *", "* * * 0 *", "* * * 13 *", "* * * * 8", "* * * * xyz", "* * * may1 *",
		"1-60 * * * *", "1,60 * * * *", "60/2 * * * *", "1,, * * * *", "1- * * * *", "* * * * -", "*/x * * * *",
	} {
		if pattern.MatchString(refused) {
			t.Errorf("%q is admitted", refused)
		}
		if _, err := Parse(refused, ""); err == nil {
			t.Errorf("%q can be parsed", refused)
		}
	}

	random := rand.New(rand.NewPCG(1, 2))
	value := func(f field) string {
		n := f.first + random.IntN(f.last-f.first+1)
		if f.names != nil && random.IntN(3) == 0 {
			return strings.ToUpper(f.names[n-f.first])
		}
		return strings.Repeat("0", random.IntN(3)) + strconv.Itoa(n)
	}
	parsed := 0
	for range 50_000 {
		texts := make([]string, len(fields))
		for i, f := range fields {
			items := make([]string, 1+random.IntN(3))
			for j := range items {
				items[j] = []string{"*", "?", value(f), value(f) + "-" + value(f)}[random.IntN(4)]
				if random.IntN(3) == 0 {
					items[j] += fmt.Sprintf("/%d", 1+random.IntN(5))
				}
			}
			texts[i] = strings.Join(items, ",")
		}
		expression := strings.Join(texts, " ")
		if _, err := Parse(expression, ""); err != nil {
			continue
		}
		if parsed++; !pattern.MatchString(expression) {
			t.Fatalf("%q can be parsed and is not admitted", expression)
		}
	}
	if parsed < 1000 {
		t.Errorf("only %d expressions could be parsed", parsed)
	}
}
