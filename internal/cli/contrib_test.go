// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"k8s.io/cli-runtime/pkg/genericclioptions"
	"sigs.k8s.io/yaml"

	"tidekeeper.dev/tidekeeper/internal/cli/cmdutil"
	"tidekeeper.dev/tidekeeper/internal/term"
)

func readYAML(t *testing.T, into any, path ...string) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(append([]string{"..", ".."}, path...)...))
	if err != nil {
		t.Fatal(err)
	}
	if err := yaml.UnmarshalStrict(text, into); err != nil {
		t.Fatal(err)
	}
}

// tideCommand matches a plugin call in a file, and captures its command and subcommand.
var tideCommand = regexp.MustCompile(`tide --context "?\$CONTEXT"? ([a-z]+) ([a-z]+)`)

// TestContrib checks that the files in contrib/ use only plugin commands and printer columns that
// exist.
func TestContrib(t *testing.T) {
	root := newCommand(&cmdutil.Env{Kubeconfig: cmdutil.Kubeconfig{Flags: genericclioptions.NewConfigFlags(true)}, Console: cmdutil.Console{Screen: term.Screen{}}})
	var plugins struct {
		Plugins map[string]struct {
			ShortCut, Description, Command string
			Scopes, Args                   []string
			Confirm, Dangerous, Background bool
		}
	}
	readYAML(t, &plugins, "contrib", "k9s", "plugins.yaml")
	shortCuts := map[string]string{}
	for name, p := range plugins.Plugins {
		line := strings.Join(append([]string{p.Command}, p.Args...), " ")
		words := tideCommand.FindStringSubmatch(line)
		if words == nil {
			t.Errorf("%s does not run kubectl tide: %s", name, line)
			continue
		}
		found, rest, err := root.Find(words[1:])
		if err != nil || len(rest) > 0 || found.Name() != words[2] {
			t.Errorf("%s: there is no command kubectl tide %s %s", name, words[1], words[2])
		}
		for _, scope := range p.Scopes {
			if other := shortCuts[scope+p.ShortCut]; other != "" {
				t.Errorf("%s and %s have the same key", name, other)
			}
			shortCuts[scope+p.ShortCut] = name
		}
		if words[2] == "now" && !p.Confirm {
			t.Errorf("%s changes something without a question", name)
		}
	}
	if len(plugins.Plugins) < 5 {
		t.Errorf("there are %d plugins", len(plugins.Plugins))
	}

	var views struct {
		Views map[string]struct {
			SortColumn string
			Columns    []string
		}
	}
	readYAML(t, &views, "contrib", "k9s", "views.yaml")
	for _, kind := range []string{"nodepools", "nodemaintenances", "scheduledrestarts"} {
		crd, err := os.ReadFile(filepath.Join("..", "..", "config", "crd", "bases", "tidekeeper.dev_"+kind+".yaml"))
		if err != nil {
			t.Fatal(err)
		}
		columns := map[string]bool{"NAME": true, "NAMESPACE": true}
		for _, match := range regexp.MustCompile(`(?m)^      name: (\w+)$`).FindAllStringSubmatch(string(crd), -1) {
			columns[strings.ToUpper(match[1])] = true
		}
		view := views.Views["tidekeeper.dev/v1/"+kind]
		if len(view.Columns) == 0 {
			t.Errorf("there is no view of %s", kind)
		}
		for _, column := range view.Columns {
			if !columns[column] {
				t.Errorf("%s have no column %s", kind, column)
			}
		}
	}
}
