// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package optin

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/utils/ptr"
)

func TestParseWish(t *testing.T) {
	const schedule, zone, age = "tidekeeper.dev/restart-schedule", "tidekeeper.dev/restart-time-zone", "tidekeeper.dev/restart-max-pod-age-seconds"
	const wantAge = "tidekeeper.dev/restart-max-pod-age-seconds must be a number of seconds from 300 to 31536000, not "
	for _, tt := range []struct {
		name        string
		annotations map[string]string
		want        wish
		wantErr     string
	}{
		{name: "none"},
		{name: "others", annotations: map[string]string{"mtsre.meitu.com/eru": "true"}},
		{name: "false", annotations: in("false", schedule, "nonsense"), want: wish{off: true}},
		{name: "true", annotations: in("true"), want: wish{in: true}},
		{
			name: "a schedule", annotations: in("true", schedule, "0 3 * * 1-5"),
			want: wish{in: true, schedule: ptr.To("0 3 * * 1-5")},
		},
		{
			name: "a time zone", annotations: in("true", zone, "Europe/Berlin"),
			want: wish{in: true, timeZone: ptr.To("Europe/Berlin")},
		},
		{
			name: "both", annotations: in("true", schedule, "@daily", zone, "UTC"),
			want: wish{in: true, schedule: ptr.To("@daily"), timeZone: ptr.To("UTC")},
		},
		{name: "an age", annotations: in("true", age, "86400"), want: wish{in: true, maxPodAgeSeconds: ptr.To[int32](86400)}},
		{name: "an age without the opt-in", annotations: map[string]string{age: "86400"}},
		{name: "a schedule without the opt-in", annotations: map[string]string{schedule: "0 3 * * *"}},

		{name: "another value", annotations: in("yes"), wantErr: `tidekeeper.dev/scheduled-restart must be "true" or "false", not "yes"`},
		{name: "in capitals", annotations: in("True"), wantErr: `tidekeeper.dev/scheduled-restart must be "true" or "false", not "True"`},
		{name: "empty", annotations: in(""), wantErr: `tidekeeper.dev/scheduled-restart must be "true" or "false", not ""`},
		{
			name: "six fields", annotations: in("true", schedule, "0 0 3 * * *"),
			wantErr: `tidekeeper.dev/restart-schedule: schedule "0 0 3 * * *": has 6 fields`,
		},
		{name: "no schedule", annotations: in("true", schedule, ""), wantErr: `tidekeeper.dev/restart-schedule: schedule "": is empty`},
		{
			name: "an unknown zone", annotations: in("true", schedule, "@daily", zone, "Mars/Olympus"),
			wantErr: `tidekeeper.dev/restart-time-zone: unknown time zone "Mars/Olympus"`,
		},
		{name: "an empty age", annotations: in("true", age, ""), wantErr: wantAge + `""`},
		{name: "an age with a unit", annotations: in("true", age, "24h"), wantErr: wantAge + `"24h"`},
		{name: "an age that is too low", annotations: in("true", age, "299"), wantErr: wantAge + `"299"`},
		{name: "an age that is too high", annotations: in("true", age, "31536001"), wantErr: wantAge + `"31536001"`},
		{name: "an age that is no 32-bit number", annotations: in("true", age, "4294967596"), wantErr: wantAge + `"4294967596"`},
		{name: "an empty zone", annotations: in("true", zone, ""), wantErr: "tidekeeper.dev/restart-time-zone is empty"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, err := parseWish(tt.annotations)
			if tt.wantErr == "" && err != nil || tt.wantErr != "" && (err == nil || !strings.HasPrefix(err.Error(), tt.wantErr)) {
				t.Fatalf("error: got %v, want one that begins with %q", err, tt.wantErr)
			}
			if diff := cmp.Diff(tt.want, got, cmp.AllowUnexported(wish{})); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// in returns opt-in annotations: the given value of the opt-in itself, and other annotations given
// as alternating keys and values.
func in(value string, others ...string) map[string]string {
	annotations := map[string]string{"tidekeeper.dev/scheduled-restart": value}
	for i := 0; i < len(others); i += 2 {
		annotations[others[i]] = others[i+1]
	}
	return annotations
}
