// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestRoomTables checks that the page gets the tables of both records, and that the plot names each
// method.
func TestRoomTables(t *testing.T) {
	results, page := t.TempDir(), filepath.Join(t.TempDir(), "page.md")
	write(t, filepath.Join(results, "cases.json"), `{"size": "cases", "worlds": 200, "first": 1, "worldsPerSecond": 214.6, "cores": 2, "methods": [
		{"name": "ours", "exact": 190, "atMost": 10}, {"name": "a sum", "exact": 20, "tooMuch": 170, "tooLittle": 10}], "atMostBecause": {"spread": 7, "affinity": 3}}`)
	write(t, filepath.Join(results, "sample.json"), `{"size": "sample", "worlds": 10, "first": 1, "worldsPerSecond": 0.512, "cores": 2, "methods": [{"name": "ours", "exact": 10}]}`)
	write(t, page, "<!-- table of cases -->\n<!-- end of the table -->\nand\n<!-- table of sample -->\n<!-- end of the table -->\n")
	if err := drawRoom(results, page); err != nil {
		t.Fatal(err)
	}
	want := "<!-- table of cases -->\n" + `
200 random clusters from ` + "`SEED=1`" + `, 215 a second on 2 cores:

| number of copies by | exact | at most, not exceeded | too little | too much |
|---|---|---|---|---|
| ours | 95.0 % | 5.0 % | 0.0 % | 0.0 % |
| a sum | 10.0 % | 0.0 % | 5.0 % | 85.0 % |

*At most* because of affinity (3), spread (7).

<!-- end of the table -->
and
<!-- table of sample -->

10 random clusters from ` + "`SEED=1`" + `, 0.512 a second on 2 cores:

| number of copies by | exact | at most, not exceeded | too little | too much |
|---|---|---|---|---|
| ours | 100.0 % | 0.0 % | 0.0 % | 0.0 % |

<!-- end of the table -->
`
	got, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != want {
		t.Errorf("the page is\n%s\nwant\n%s", got, want)
	}
	drawn, err := os.ReadFile(filepath.Join(strings.TrimSuffix(page, ".md"), "right.svg"))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"ours", "a sum", "exact", "too much"} {
		if !strings.Contains(string(drawn), ">"+name+"<") {
			t.Errorf("the plot does not name %q", name)
		}
	}
}
