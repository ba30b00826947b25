// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"strings"
	"testing"
)

func TestLinksOfPackedPages(t *testing.T) {
	for text, want := range map[string]string{
		"[a](../concepts/a.md)":            "[a](https://tidekeeper.dev/docs/concepts/a)",
		"[a](a.md#b) [c](../../README.md)": "[a](https://tidekeeper.dev/docs/tasks/a#b) [c](https://tidekeeper.dev/README)",
		"![a](../images/a.png)":            "![a](https://tidekeeper.dev/docs/images/a.png)",
		"[a](https://example.com) [b](#b)": "[a](https://example.com) [b](#b)",
	} {
		if got := absolute(text, "docs/tasks"); got != want {
			t.Errorf("%s: got %s, want %s", text, got, want)
		}
	}
}

func TestGuideHasTheVersion(t *testing.T) {
	t.Chdir("../..")
	r := &release{version: "v1.2.3", files: map[string][]byte{}, hasKit: true, plugins: []packed{{}}, platforms: []platform{{}}}
	if err := r.guide(); err != nil {
		t.Fatal(err)
	}
	text := string(r.files[guide])
	if strings.Contains(text, "0.1.0") || !strings.Contains(text, "-v1.2.3-linux-") || !strings.Contains(text, "tidekeeper-1.2.3.tgz") {
		t.Errorf("the guide is not that of v1.2.3:\n%s", text)
	}
}
