// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"slices"
	"testing"
)

func TestSleepsSayWhy(t *testing.T) {
	const source = "package a\n\nimport \"time\"\n\nfunc a() {\n" +
		"\ttime.Sleep(time.Second)\n" +
		"\ttime.Sleep(time.Second) // sleep: the outage\n" +
		"\ttime.Sleep(time.Second) // the outage\n" +
		"\ttime.Sleep(time.Second) // sleep: \n" +
		"\t// sleep: on another line\n" +
		"\ttime.Sleep(time.Second)\n" +
		"\tfor i := 0; i < 3; time.Sleep(time.Second) {\n\t}\n" +
		"\t_ = \"time.Sleep(time.Second)\"\n" +
		"\tother.Sleep(time.Second)\n" +
		"\tdo(time.Sleep)\n" +
		"}\n"
	all := []int{6, 8, 9, 11, 12, 16}
	for file, want := range map[string][]int{
		"internal/a/a_test.go": all, "test/framework/a.go": all, "sandbox/test/a.go": all, "sandbox/internal/a/a_test.go": all,
		"internal/a/a.go": nil, "hack/demo/a.go": nil, "internal/test/a.go": nil,
	} {
		findings, err := check(file, []byte(source))
		if err != nil {
			t.Fatal(err)
		}
		var got []int
		for _, f := range findings {
			got = append(got, f.line)
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s: found in the lines %v, want %v", file, got, want)
		}
	}
}
