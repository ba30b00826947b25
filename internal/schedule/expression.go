// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package schedule

import (
	"errors"
	"fmt"
	"math/bits"
	"regexp"
	"strconv"
	"strings"

	"github.com/netresearch/go-cron"
)

// maxLength is the maximum length of an expression in bytes. It is far longer than any useful
// expression: an expression that lists every value of all five fields has about 330 characters.
const maxLength = 1024

// searchYears is the number of years that go-cron searches for the next matching time. The rarest
// date is 29 February, which may come eight years after the previous 29 February (2096 to 2104, as
// 2100 is not a leap year).
const searchYears = 9

// parser parses the expanded expression that [values.expand] returns. DowOrDom is cron's rule for
// the two day fields: if neither field is *, a day needs to match only one of them.
var parser = cron.MustNewParser(cron.Minute | cron.Hour | cron.Dom | cron.Month | cron.Dow | cron.DowOrDom).
	WithMaxSearchYears(searchYears)

var descriptors = map[string]string{
	"@yearly":   "0 0 1 1 *",
	"@annually": "0 0 1 1 *",
	"@monthly":  "0 0 1 * *",
	"@weekly":   "0 0 * * 0",
	"@daily":    "0 0 * * *",
	"@midnight": "0 0 * * *",
	"@hourly":   "0 * * * *",
}

// field describes one of the five fields of an expression: its name in error messages and its range
// of values.
type field struct {
	name       string
	first      int
	last       int
	names      []string // names for the values, beginning with the value first
	sundayAs7  bool
	extensions bool // true if other cron implementations accept L, W and # in this field
}

var fields = [5]field{
	{name: "minute", first: 0, last: 59},
	{name: "hour", first: 0, last: 23},
	{name: "day of month", first: 1, last: 31, extensions: true},
	{name: "month", first: 1, last: 12, names: []string{"jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"}},
	{name: "day of week", first: 0, last: 6, names: []string{"sun", "mon", "tue", "wed", "thu", "fri", "sat"}, sundayAs7: true, extensions: true},
}

const (
	minuteField = iota
	hourField
	dayField
	monthField
	weekdayField
)

// parseExpression returns go-cron's form of an expression (the calendar, which finds matching
// times), and the values of the expression's fields. Errors describe the invalid part of the
// expression and how to correct it.
func parseExpression(expression string) (calendar *cron.SpecSchedule, times fieldValues, err error) {
	texts, err := split(expression)
	if err != nil {
		return nil, fieldValues{}, err
	}
	expanded := make([]string, len(fields))
	for i, f := range fields {
		if times[i], err = f.parse(texts[i]); err != nil {
			return nil, fieldValues{}, fmt.Errorf("%s %q: %w", f.name, texts[i], err)
		}
		expanded[i] = times[i].expand()
	}
	parsed, err := parser.Parse(strings.Join(expanded, " "))
	if err != nil {
		return nil, fieldValues{}, err
	}
	calendar, ok := parsed.(*cron.SpecSchedule)
	if !ok {
		return nil, fieldValues{}, fmt.Errorf("read as %T, which has no calendar", parsed)
	}
	// The search may start at any time, because each existing date occurs at least once in
	// searchYears.
	if calendar.Next(epoch).IsZero() {
		return nil, fieldValues{}, errors.New("never happens: no month it names has a day it names")
	}
	return calendar, times, nil
}

// split returns the five fields of an expression. It expands a descriptor such as @daily.
func split(expression string) ([]string, error) {
	if len(expression) > maxLength {
		return nil, fmt.Errorf("has %d characters, at most %d are read", len(expression), maxLength)
	}
	texts := strings.Fields(expression)
	switch {
	case len(texts) == 0:
		return nil, errors.New(`is empty: write five fields, such as "0 3 * * *", or @daily`)
	case strings.HasPrefix(texts[0], "TZ=") || strings.HasPrefix(texts[0], "CRON_TZ="):
		return nil, errors.New("a time zone does not belong here: use spec.timeZone")
	case texts[0] == "@every":
		return nil, errors.New(`@every is not supported, as it has no fixed times: write for example "*/30 * * * *" or "0 */6 * * *"`)
	case texts[0] == "@reboot":
		return nil, errors.New(`@reboot is not supported, as it does not name a time: write five fields, such as "0 3 * * *"`)
	case strings.HasPrefix(texts[0], "@"):
		if five, ok := descriptors[texts[0]]; ok && len(texts) == 1 {
			return strings.Fields(five), nil
		}
		return nil, errors.New("is none of @yearly, @annually, @monthly, @weekly, @daily, @midnight, @hourly")
	case len(texts) > len(fields):
		return nil, fmt.Errorf("has %d fields: write five (minute, hour, day-of-month, month, day-of-week), without seconds or years", len(texts))
	case len(texts) < len(fields):
		return nil, fmt.Errorf("has %d of the five fields minute, hour, day-of-month, month and day-of-week", len(texts))
	}
	return texts, nil
}

// parse returns the values that a field's text matches.
//
// go-cron (v0.9.1) is not used for parsing: it rejects THU because of the H, reads 1/2 in the day
// of week as ending on Sunday, which can also be written as 7, reads "*-5" as "*", and accepts ","
// as a field with no values.
func (f field) parse(text string) (values, error) {
	var v values
	for item := range strings.SplitSeq(text, ",") {
		low, high, step, err := f.item(item)
		if err != nil {
			return values{}, err
		}
		// As in Kubernetes' CronJob, a * with a step is a list of values and does not count as *.
		v.star = v.star || (isStar(item[:1]) && step == 1)
		for value := low; value <= high; value += step {
			v.set |= 1 << value
		}
	}
	return v, nil
}

// item returns the range and the step of one item in a field's comma-separated list: a *, a value
// or a range, with or without a step.
func (f field) item(item string) (low, high, step int, err error) {
	span, stepText, hasStep := strings.Cut(item, "/")
	lowText, highText, isRange := strings.Cut(span, "-")
	low, high = f.first, f.last
	if !isStar(span) {
		if low, err = f.value(lowText); err != nil {
			return 0, 0, 0, f.explain(item, err)
		}
		switch {
		case isRange:
			if high, err = f.value(highText); err != nil {
				return 0, 0, 0, f.explain(item, err)
			}
		case !hasStep: // A value with a step is a range that extends to the end of the field.
			high = low
		}
	}
	if low > high {
		return 0, 0, 0, fmt.Errorf("%s ends before it begins: write it as two, as in 22-23,0-2", item)
	}
	if !hasStep {
		return low, high, 1, nil
	}
	step, err = number(stepText)
	if err != nil || step == 0 {
		return 0, 0, 0, f.explain(item, fmt.Errorf("the step %q is not a positive number", stepText))
	}
	// A user who writes "*/90" expects a tick every 90 minutes, but cron would start each hour again
	// and tick once per hour.
	if size := high - low + 1; step > 1 && step >= size {
		return 0, 0, 0, fmt.Errorf("the step of %s is not shorter than its %d values: if only the first is meant, write %d", item, size, low)
	}
	return low, high, step, nil
}

func isStar(text string) bool { return text == "*" || text == "?" }

// value parses a number or a name of a field.
func (f field) value(text string) (int, error) {
	for i, name := range f.names {
		if strings.EqualFold(text, name) {
			return f.first + i, nil
		}
	}
	last := f.last
	if f.sundayAs7 {
		last = 7
	}
	value, err := number(text)
	if err != nil || value < f.first || value > last {
		return 0, fmt.Errorf("%q is not in the range %d to %d", text, f.first, last)
	}
	return value, nil
}

func number(text string) (int, error) {
	value, err := strconv.ParseUint(text, 10, 16) // Unlike Atoi, ParseUint accepts no sign.
	return int(value), err
}

// dayExtensions matches the Quartz extensions L, W and #, for example L, LW, L-3, 15W, 5L, FRIL and
// FRI#3.
var dayExtensions = regexp.MustCompile(`(?i)^(LW?|L-\d+|\d+[LW]|[a-z]{3}L|\w+#\w+)$`)

// explain returns a more helpful error than err if the item has the syntax of another cron
// implementation.
func (f field) explain(item string, err error) error {
	switch {
	case strings.HasPrefix(item, "H"):
		return errors.New("the H of Jenkins is not supported: write a number, and use spec.spreadSeconds to have objects start at different times")
	case f.extensions && dayExtensions.MatchString(item):
		return errors.New("the L, W and # of Quartz are not supported: write the days as numbers, ranges or names")
	}
	return err
}

// values is the set of values that a field matches, with one bit for each value. star is true if
// the field is a *, which matters for cron's rule about the two day fields. Sunday may be bit 0,
// bit 7 or both.
type values struct {
	set  uint64
	star bool
}

// fieldValues holds the values of the five fields, in the order of the variable fields.
type fieldValues [len(fields)]values

// list returns the values in ascending order, with Sunday as 0.
func (v values) list(f field) []int {
	set := v.set
	if f.sundayAs7 {
		set = set&^(1<<7) | set>>7&1
	}
	var list []int
	for ; set != 0; set &= set - 1 {
		list = append(list, bits.TrailingZeros64(set))
	}
	return list
}

// full reports whether v contains every value of the field.
func (v values) full(f field) bool { return len(v.list(f)) == f.last-f.first+1 }

// expand formats the values as a plain list, so that go-cron has nothing left to interpret except 7
// as Sunday.
func (v values) expand() string {
	if v.star {
		return "*"
	}
	var texts []string
	for set := v.set; set != 0; set &= set - 1 {
		texts = append(texts, strconv.Itoa(bits.TrailingZeros64(set)))
	}
	return strings.Join(texts, ",")
}
