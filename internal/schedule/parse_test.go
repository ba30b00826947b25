// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package schedule

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestParseRefuses(t *testing.T) {
	const day = `the L, W and # of Quartz are not supported: write the days as numbers, ranges or names`
	const hash = `the H of Jenkins is not supported: write a number, and use spec.spreadSeconds to have objects start at different times`
	const descriptor = `is none of @yearly, @annually, @monthly, @weekly, @daily, @midnight, @hourly`
	const never = `never happens: no month it names has a day it names`
	tests := []struct{ expression, want string }{
		{"", `is empty: write five fields, such as "0 3 * * *", or @daily`},
		{"  ", `is empty: write five fields, such as "0 3 * * *", or @daily`},
		{"@every 5m", `@every is not supported, as it has no fixed times: write for example "*/30 * * * *" or "0 */6 * * *"`},
		{"@reboot", `@reboot is not supported, as it does not name a time: write five fields, such as "0 3 * * *"`},
		{"@Daily", descriptor},
		{"@fortnightly", descriptor},
		{"@daily 3", descriptor},
		{"TZ=Europe/Berlin 0 3 * * *", "a time zone does not belong here: use spec.timeZone"},
		{"CRON_TZ=Europe/Berlin @daily", "a time zone does not belong here: use spec.timeZone"},
		{"TZ=", "a time zone does not belong here: use spec.timeZone"},
		{"0 0 3 * * *", "has 6 fields: write five (minute, hour, day-of-month, month, day-of-week), without seconds or years"},
		{"0 0 3 * * * 2026", "has 7 fields: write five (minute, hour, day-of-month, month, day-of-week), without seconds or years"},
		{"0 3 * *", "has 4 of the five fields minute, hour, day-of-month, month and day-of-week"},
		{"tomorrow", "has 1 of the five fields minute, hour, day-of-month, month and day-of-week"},
		{"60 3 * * *", `minute "60": "60" is not in the range 0 to 59`},
		{"0 24 * * *", `hour "24": "24" is not in the range 0 to 23`},
		{"0 0 0 * *", `day of month "0": "0" is not in the range 1 to 31`},
		{"0 0 1 13 *", `month "13": "13" is not in the range 1 to 12`},
		{"0 0 * * 8", `day of week "8": "8" is not in the range 0 to 7`},
		{"0 0 * * 1,someday", `day of week "1,someday": "someday" is not in the range 0 to 7`},
		{"mon 0 * * *", `minute "mon": "mon" is not in the range 0 to 59`},
		{"-5 0 * * *", `minute "-5": "" is not in the range 0 to 59`},
		{"+5 0 * * *", `minute "+5": "+5" is not in the range 0 to 59`},
		{"5- 0 * * *", `minute "5-": "" is not in the range 0 to 59`},
		{"*-5 0 * * *", `minute "*-5": "*" is not in the range 0 to 59`},
		{"1-2-3 0 * * *", `minute "1-2-3": "2-3" is not in the range 0 to 59`},
		{", 0 * * *", `minute ",": "" is not in the range 0 to 59`},
		{"0 0 1,,2 * *", `day of month "1,,2": "" is not in the range 1 to 31`},
		{"99999999999999999999 0 * * *", `minute "99999999999999999999": "99999999999999999999" is not in the range 0 to 59`},
		{"*/0 0 * * *", `minute "*/0": the step "0" is not a positive number`},
		{"*/ 0 * * *", `minute "*/": the step "" is not a positive number`},
		{"*/2/3 0 * * *", `minute "*/2/3": the step "2/3" is not a positive number`},
		{"*/90 * * * *", `minute "*/90": the step of */90 is not shorter than its 60 values: if only the first is meant, write 0`},
		{"*/60 * * * *", `minute "*/60": the step of */60 is not shorter than its 60 values: if only the first is meant, write 0`},
		{"0 0 * * */7", `day of week "*/7": the step of */7 is not shorter than its 7 values: if only the first is meant, write 0`},
		{"0 22-2 * * *", `hour "22-2": 22-2 ends before it begins: write it as two, as in 22-23,0-2`},
		{"0 5-4 * * *", `hour "5-4": 5-4 ends before it begins: write it as two, as in 22-23,0-2`},
		{"0 0 * * fri-mon", `day of week "fri-mon": fri-mon ends before it begins: write it as two, as in 22-23,0-2`},
		{"H 3 * * *", `minute "H": ` + hash},
		{"0 H(0-5) * * *", `hour "H(0-5)": ` + hash},
		{"H/15 * * * *", `minute "H/15": ` + hash},
		{"0 0 L * *", `day of month "L": ` + day},
		{"0 0 L-3 * *", `day of month "L-3": ` + day},
		{"0 0 LW * *", `day of month "LW": ` + day},
		{"0 0 15W * *", `day of month "15W": ` + day},
		{"0 0 * * 5L", `day of week "5L": ` + day},
		{"0 0 * * FRIL", `day of week "FRIL": ` + day},
		{"0 0 * * FRI#3", `day of week "FRI#3": ` + day},
		{"0 0 30 2 *", never},
		{"0 0 30,31 feb *", never},
		{"0 0 31 4 *", never},
		{"0 0 31 2,4,6,9,11 *", never},
		{strings.Repeat("1,", 1000) + "1 * * * *", "has 2009 characters, at most 1024 are read"},
	}
	for _, test := range tests {
		s, err := Parse(test.expression, "")
		if err == nil {
			t.Errorf("Parse(%q) = %s, want an error", test.expression, s)
			continue
		}
		_, got, _ := strings.Cut(err.Error(), `": `)
		if diff := cmp.Diff(test.want, got); diff != "" {
			t.Errorf("error of %q (-want +got):\n%s", test.expression, diff)
		}
		if !strings.HasPrefix(err.Error(), `schedule "`) || strings.Contains(err.Error(), "\n") || len(err.Error()) > 250 {
			t.Errorf("error of %q is not one short line that names the schedule: %s", test.expression, err)
		}
	}
}

func TestParseAccepts(t *testing.T) {
	// Both expressions of each pair must have the same ticks.
	tests := [][2]string{
		{"0 3 * * *", "00 03 ? * ?"},
		{"*/15 * * * *", "0,15,30,45 * * * *"},
		{"5/20 * * * *", "5,25,45 * * * *"},
		{"0-30/10,7 * * * *", "0,7,10,20,30 * * * *"},
		{"0 9-17/4 * * 1-5", "0 9,13,17 * * mon-FRI"},
		{"0 0 1 jan-mar *", "0 0 1 1,2,3 *"},
		{"0 0 * * 0", "0 0 * * 7"},
		{"0 0 * * 6-7", "0 0 * * sat,sun"},
		{"0 0 * * */2", "0 0 * * 0,2,4,6"},
		{"0 0 * * 1/2", "0 0 * * 1,3,5"},
		{"0 0 * * 0-7", "0 0 * * 0-6"},
		{"0 0 */1 * mon", "0 0 * * mon"},
		{"0 0 *,5 * mon", "0 0 * * mon"},
		{"0 0 30 2 1", "0 0 31 2 mon"}, // 30 February does not exist, but the expression also matches Mondays.
	}
	for _, test := range tests {
		a, b := mustParse(t, test[0], ""), mustParse(t, test[1], "")
		var ticks [2][]string
		for i, s := range []*Schedule{a, b} {
			at := epoch
			for range 100 {
				at, _ = s.Next(at)
				ticks[i] = append(ticks[i], at.Format(layout))
			}
		}
		if diff := cmp.Diff(ticks[0], ticks[1]); diff != "" {
			t.Errorf("%s and %s differ (-first +second):\n%s", a, b, diff)
		}
	}
}

func TestZones(t *testing.T) {
	for _, zone := range []string{"", "UTC", "Etc/UTC", "GMT", "Europe/Berlin", "America/Argentina/Buenos_Aires", "America/Port-au-Prince", "Etc/GMT+12", "EST5EDT"} {
		if _, err := Parse("@daily", zone); err != nil {
			t.Errorf("zone %q: %s", zone, err)
		}
	}
	for _, zone := range []string{
		"Local", "local", "localtime", "posixrules", "Factory", "posix/Europe/Berlin", "right/Europe/Berlin",
		"Europe/Berlim", "europe/berlin", "CEST", "+02:00", "UTC+2", "2", " UTC", "UTC ",
		"/etc/passwd", "../etc/passwd", "Europe/../Europe/Berlin", "./UTC", "Europe//Berlin", "Europe/", "Europe", `Europe\Berlin`, "Europe/Berlin\n", "Zürich", "\x00",
		strings.Repeat("A", 5000),
	} {
		s, err := Parse("@daily", zone)
		if err == nil {
			t.Errorf("zone %q is accepted as %s", zone, s.Zone())
			continue
		}
		if want := "write a name from the IANA database, such as Europe/Berlin or UTC"; !strings.HasPrefix(err.Error(), "unknown time zone ") ||
			!strings.HasSuffix(err.Error(), want) || len(err.Error()) > 250 || strings.Contains(err.Error(), "\n") {
			t.Errorf("zone %q: the error is %q, want one short line that ends with %q", zone, err, want)
		}
	}
	if a, b := mustParse(t, "@daily", "Asia/Tokyo"), mustParse(t, "@hourly", "Asia/Tokyo"); a.location != b.location {
		t.Error("two schedules in one zone have a table each")
	}
}

func TestSpread(t *testing.T) {
	// The expected values are constants, because a change of the formula would move every restart
	// in every cluster.
	tests := []struct {
		namespace, name string
		window          time.Duration
		want            time.Duration
	}{
		{"shop", "web", time.Hour, 130 * time.Second},
		{"shop", "web", 10 * time.Minute, 130 * time.Second},
		{"shop", "api", time.Hour, 3245 * time.Second},
		{"blog", "web", time.Hour, 3389 * time.Second},
		{"shop", "web", time.Second, 0},
		{"shop", "web", 999 * time.Millisecond, 0},
		{"shop", "web", 0, 0},
		{"shop", "web", -time.Hour, 0},
	}
	if got := SpreadByUID("3f1c8a52-8d5e-4a0b-9d1c-1f2e3d4c5b6a", time.Hour); got != 3514*time.Second {
		t.Errorf("by UID, as earlier versions did: %s", got)
	}
	for _, test := range tests {
		if got := Spread(test.namespace, test.name, test.window); got != test.want {
			t.Errorf("Spread(%q, %q, %s) = %s, want %s", test.namespace, test.name, test.window, got, test.want)
		}
	}
}
