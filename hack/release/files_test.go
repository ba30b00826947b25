// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"os"
	"strings"
	"testing"
)

// findings is an excerpt of govulncheck -format=json's output. It contains a finding about a module
// that is only linked, and a finding about a module with a vulnerable function that is called.
const findings = `{"config":{"protocol_version":"v1.0.0","scanner_name":"govulncheck"}}
{"osv":{"id":"GO-2026-0001","aliases":["CVE-2026-1"]}}
{"osv":{"id":"GO-2026-0002","aliases":["CVE-2026-2"]}}
{"finding":{"osv":"GO-2026-0001","fixed_version":"v1.0.1","trace":[{"module":"example.dev/b","version":"v1.0.0"}]}}
{"finding":{"osv":"GO-2026-0001","fixed_version":"v1.0.1","trace":[{"module":"example.dev/b","version":"v1.0.0","package":"example.dev/b"}]}}
{"finding":{"osv":"GO-2026-0002","fixed_version":"v2.3.4","trace":[{"module":"stdlib","version":"go1.26.1","package":"net","function":"Dial"}]}}
`

func TestVEXNamesWhatScannersKnow(t *testing.T) {
	data, err := vexOf([]byte(findings), "v0.1.0", "example.dev/team/tidekeeper", "sha256:abc", noon)
	if err != nil {
		t.Fatal(err)
	}
	var document openVEX
	if err := json.Unmarshal(data, &document); err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, s := range document.Statements {
		line := s.Vulnerability.Name + " " + s.Vulnerability.Aliases[0] + " " + s.Status + " " + s.Justification + s.ActionStatement
		for _, p := range s.Products {
			line += "\n  " + p.ID
			for _, part := range p.Subcomponents {
				line += " " + part.ID
			}
		}
		got = append(got, line)
	}
	const want = `GO-2026-0001 CVE-2026-1 not_affected vulnerable_code_not_in_execute_path
  pkg:golang/tidekeeper.dev/tidekeeper@v0.1.0 pkg:golang/example.dev/b@v1.0.0
  pkg:oci/tidekeeper@sha256%3Aabc?repository_url=example.dev%2Fteam%2Ftidekeeper pkg:golang/example.dev/b@v1.0.0
GO-2026-0002 CVE-2026-2 affected Use a later release, with stdlib v2.3.4.
  pkg:golang/tidekeeper.dev/tidekeeper@v0.1.0 pkg:golang/stdlib@1.26.1
  pkg:oci/tidekeeper@sha256%3Aabc?repository_url=example.dev%2Fteam%2Ftidekeeper pkg:golang/stdlib@1.26.1`
	if strings.Join(got, "\n") != want {
		t.Errorf("the document says\n%s\nwant\n%s", strings.Join(got, "\n"), want)
	}
	if _, err := vexOf([]byte(findings+"tidekeeper: exit status 3"), "v0.1.0", "tidekeeper", "", noon); err == nil {
		t.Error("a file with other text than findings is read")
	}
}

func TestInstallNamesTheImage(t *testing.T) {
	text, err := installOf(os.DirFS("../../config"), "example.dev/tidekeeper", "sha256:abc")
	if err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(string(text), "image: example.dev/tidekeeper@sha256:abc\n"); n != 1 {
		t.Errorf("the image is named %d times, want once", n)
	}
	namespace, definition, deployment := strings.Index(string(text), "\nkind: Namespace\n"), strings.Index(string(text), "\nkind: CustomResourceDefinition\n"), strings.Index(string(text), "\nkind: Deployment\n")
	if namespace < 0 || namespace > deployment || definition < 0 || definition > deployment {
		t.Errorf("the namespace is at %d, a kind at %d and the Deployment at %d", namespace, definition, deployment)
	}
}

//nolint:dupword // Ruby ends its blocks so.
func TestFormulaHasItsSystems(t *testing.T) {
	text, err := brewOf("v0.1.0", "https://example.dev/v0.1.0", []packed{
		{platform{"linux", "amd64"}, "a.tar.gz", "1"}, {platform{"darwin", "arm64"}, "b.tar.gz", "2"}, {platform{"windows", "amd64"}, "c.tar.gz", "3"},
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"  on_macos do\n    on_arm do\n      url \"https://example.dev/v0.1.0/b.tar.gz\"\n      sha256 \"2\"\n    end\n  end\n",
		"  on_linux do\n    on_intel do\n      url \"https://example.dev/v0.1.0/a.tar.gz\"\n      sha256 \"1\"\n    end\n  end\n",
	} {
		if !strings.Contains(string(text), want) {
			t.Errorf("the formula is\n%s\nand does not have\n%s", text, want)
		}
	}
	if strings.Contains(string(text), "c.tar.gz") {
		t.Error("the formula has an archive for Windows")
	}
}
