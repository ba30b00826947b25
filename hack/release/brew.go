// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"strings"
	"text/template"
)

// formula is the template of the plugin's Homebrew formula.
//
//nolint:dupword // Ruby ends its blocks so.
var formula = template.Must(template.New("formula").Parse(`class KubectlTide < Formula
  desc "Show node pools and scheduled restarts"
  homepage "https://tidekeeper.dev"
  version "{{.Version}}"
  license "Apache-2.0"
{{range .Systems}}
  on_{{.Name}} do{{range .Archives}}
    on_{{.Processor}} do
      url "{{.Address}}"
      sha256 "{{.Sum}}"
    end{{end}}
  end
{{end}}
  def install
    bin.install "kubectl-tide"
  end

  test do
    assert_match "v#{version}", shell_output("#{bin}/kubectl-tide --version")
  end
end
`))

// brewOf returns the Homebrew formula that installs the plugin's archives from url. It omits the
// archives for systems that Homebrew does not support.
func brewOf(version, url string, archives []packed) ([]byte, error) {
	type archive struct{ Processor, Address, Sum string }
	type system struct {
		Name     string
		Archives []archive
	}
	var systems []system
	for _, known := range []struct{ os, name string }{{"darwin", "macos"}, {"linux", "linux"}} {
		s := system{Name: known.name}
		for _, a := range archives {
			processor, ok := map[string]string{"amd64": "intel", "arm64": "arm"}[a.Architecture]
			if ok && a.OS == known.os {
				s.Archives = append(s.Archives, archive{processor, url + "/" + a.name, a.sha256})
			}
		}
		if len(s.Archives) > 0 {
			systems = append(systems, s)
		}
	}
	var out bytes.Buffer
	err := formula.Execute(&out, map[string]any{"Version": strings.TrimPrefix(version, "v"), "Systems": systems})
	return out.Bytes(), err
}
