// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestChooseControllers(t *testing.T) {
	known := []controller{{name: "a"}, {name: "b"}, {name: "c", offByDefault: true}}
	for _, tc := range []struct {
		selectors string
		want      []string
		wantErr   string
	}{
		{selectors: "*", want: []string{"a", "b"}},
		{selectors: "*,c", want: []string{"a", "b", "c"}},
		{selectors: "c,*", want: []string{"a", "b", "c"}},
		{selectors: "*,-a", want: []string{"b"}},
		{selectors: "-a,*", want: []string{"b"}},
		{selectors: "b", want: []string{"b"}},
		{selectors: "b,a", want: []string{"a", "b"}},
		{selectors: "a,-a", want: []string{"a"}},
		{selectors: "*,-a,a", want: []string{"b"}},
		{selectors: "-a", wantErr: "--controllers=-a: leaves no controller to run; there are: a, b, c"},
		{selectors: "*,-a,-b", wantErr: "--controllers=*,-a,-b: leaves no controller to run; there are: a, b, c"},
		{selectors: "d", wantErr: `--controllers=d: there is no controller "d"; there are: a, b, c`},
		{selectors: "*,-d", wantErr: `--controllers=*,-d: there is no controller "d"; there are: a, b, c`},
		{selectors: "", wantErr: `--controllers=: there is no controller ""; there are: a, b, c`},
	} {
		t.Run(tc.selectors, func(t *testing.T) {
			chosen, err := chooseControllers(strings.Split(tc.selectors, ","), known)
			gotErr := ""
			if err != nil {
				gotErr = err.Error()
			}
			if gotErr != tc.wantErr {
				t.Fatalf("error: got %q, want %q", gotErr, tc.wantErr)
			}
			var got []string
			for _, c := range chosen {
				got = append(got, c.name)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("chosen (-want +got):\n%s", diff)
			}
		})
	}
}

func TestEveryControllerSaysWhatItWatches(t *testing.T) {
	scheme, err := newScheme()
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range allControllers {
		if len(c.watches) == 0 || c.setup == nil {
			t.Errorf("%s watches nothing or does nothing", c.name)
		}
		for _, object := range c.watches {
			if _, _, err := scheme.ObjectKinds(object); err != nil {
				t.Errorf("%s: %v", c.name, err)
			}
		}
	}
}
