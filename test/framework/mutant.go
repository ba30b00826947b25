// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package framework

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Mistake is an edit of the manager's source code. Old occurs exactly once in the file and is
// replaced by New. If Old is empty, New is the content of a new file.
type Mistake struct{ File, Old, New string }

// Mistaken returns the content of the edited files with the mistakes applied, keyed by path.
func Mistaken(t testing.TB, mistakes ...Mistake) map[string]string {
	t.Helper()
	texts := map[string]string{}
	for _, m := range mistakes {
		file := filepath.Join(Root(), m.File)
		if m.Old == "" {
			texts[file] = m.New
			continue
		}
		if _, ok := texts[file]; !ok {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			texts[file] = string(text)
		}
		if strings.Count(texts[file], m.Old) != 1 {
			t.Errorf("%s: the text to replace must occur exactly once:\n%s", m.File, m.Old)
		}
		texts[file] = strings.Replace(texts[file], m.Old, m.New, 1)
	}
	return texts
}

// BuildMistaken builds a manager with the mistakes applied, and returns its path. Tests use it to
// verify that they detect such mistakes. It does not change the source tree.
func BuildMistaken(t testing.TB, mistakes ...Mistake) string {
	t.Helper()
	dir := t.TempDir()
	overlay := struct{ Replace map[string]string }{map[string]string{}}
	for file, text := range Mistaken(t, mistakes...) {
		replaced := filepath.Join(dir, filepath.Base(file))
		if err := os.WriteFile(replaced, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		overlay.Replace[file] = replaced
	}
	list, err := json.Marshal(overlay)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "overlay.json")
	if err := os.WriteFile(path, list, 0o600); err != nil {
		t.Fatal(err)
	}
	return Build(t, "./cmd/tidekeeper", "-overlay", path)
}
