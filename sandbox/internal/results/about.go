// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package results

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"sigs.k8s.io/yaml"
)

// About identifies the inputs on which the results in a directory depend: the operator, the input
// files, and hashes of everything else.
type About struct {
	// Command is the operator's command line. Of lists the names of the input files, such as the
	// workload. A directory holds only results with the same command and input files.
	Command []string `json:"command"`
	Of      []string `json:"of"`
	// Contents maps each kind of input, such as the operator's program or the installed manifests,
	// to a hash of its content. If a hash has changed, all cases (faults or edits) are run again.
	Contents map[string]string `json:"contents"`
	// Fresh is set if the results of earlier runs are discarded. It is not stored.
	Fresh bool `json:"-"`
}

// Keys of About.Contents, one for each kind of input.
const (
	theProgram   = "the operator's program"
	theCommands  = "the programs of the workload"
	theSandbox   = "the sandbox"
	theInstalled = "what is installed"
	theSubject   = "what is played"
	theJudging   = "the flags that judge"
)

// Inputs lists the inputs of a run on which its results depend.
type Inputs struct {
	// Command is the operator's command line. Of lists the names of the input files. Installed
	// lists the paths of the installed manifests. Commands lists the shell commands that are run
	// besides the operator.
	Command, Of, Installed, Commands []string
	// Subject is the content of the input files, such as the workload. Judging holds the values of
	// the flags that determine which runs count as findings.
	Subject, Judging any
}

// NewAbout hashes the inputs of a run.
func NewAbout(in Inputs) (About, error) {
	a := About{Command: in.Command, Of: in.Of, Contents: map[string]string{}}
	var err error
	if a.Contents[theSandbox], err = hashSelf(); err != nil {
		return a, fmt.Errorf("read %s: %w", theSandbox, err)
	}
	for name, files := range map[string][]string{theProgram: programFiles(in.Command), theInstalled: in.Installed, theCommands: executables(in.Commands)} {
		if a.Contents[name], err = hashFiles(files); err != nil {
			return a, fmt.Errorf("read %s: %w", name, err)
		}
	}
	for name, value := range map[string]any{theSubject: in.Subject, theJudging: in.Judging} {
		text, err := json.Marshal(value)
		if err != nil {
			return a, err
		}
		sum := sha256.Sum256(text)
		a.Contents[name] = hex.EncodeToString(sum[:])
	}
	return a, nil
}

// hashSelf returns a hash of the running sandbox binary. It reads the binary only once.
var hashSelf = sync.OnceValues(func() (string, error) {
	self, err := os.Executable()
	if err != nil {
		return "", err
	}
	return hashFiles([]string{self})
})

// programFiles returns the files named in a command line: the program, and all arguments that are
// files, including values after an equals sign.
func programFiles(command []string) []string {
	var files []string
	for i, word := range command {
		if i == 0 {
			if path, err := exec.LookPath(word); err == nil {
				word = path
			}
		}
		_, value, _ := strings.Cut(word, "=")
		for _, name := range []string{word, value} {
			if info, err := os.Stat(name); err == nil && info.Mode().IsRegular() {
				files = append(files, name)
			}
		}
	}
	return files
}

// executables returns the executable files whose paths are words in shell commands. It ignores
// files that are not executable, because the commands may write to them, and programs in the PATH,
// which belong to the machine.
func executables(commands []string) []string {
	var files []string
	for _, command := range commands {
		for _, word := range strings.FieldsFunc(os.ExpandEnv(command), func(r rune) bool { return strings.ContainsRune(" \t\n;|&()<>='\"`", r) }) {
			info, err := os.Stat(word)
			if err == nil && strings.Contains(word, "/") && info.Mode().IsRegular() && info.Mode().Perm()&0o111 != 0 {
				files = append(files, word)
			}
		}
	}
	return files
}

// hashFiles returns a hash of files and directories. The hash includes files outside of a directory
// to which kustomizations in the directory refer.
func hashFiles(paths []string) (string, error) {
	sum, seen := sha256.New(), map[string]bool{}
	for len(paths) > 0 {
		path := paths[0]
		paths = paths[1:]
		if target, err := filepath.EvalSymlinks(path); err == nil {
			path = target
		}
		if seen[path] {
			continue
		}
		seen[path] = true
		elsewhere, err := hashTree(sum, path)
		if err != nil {
			return "", err
		}
		paths = append(paths, elsewhere...)
	}
	return hex.EncodeToString(sum.Sum(nil)), nil
}

// hashTree adds a file or directory to a hash, and returns the files outside of the directory to
// which kustomizations in the directory refer.
func hashTree(sum hash.Hash, root string) (elsewhere []string, _ error) {
	return elsewhere, filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := os.Stat(path) // Follow symbolic links.
		switch {
		case err != nil || info.IsDir() && !entry.IsDir():
			return nil // Ignore broken links and, like kubectl, links to directories.
		case !info.Mode().IsRegular():
			return nil
		}
		within, err := filepath.Rel(root, path)
		if err != nil {
			return err
		}
		file, err := os.Open(filepath.Clean(path))
		if err != nil {
			return err
		}
		defer file.Close()
		fmt.Fprintf(sum, "%s %d\n", within, info.Size())
		if _, err := io.Copy(sum, file); err != nil {
			return err
		}
		if within != "." && slices.Contains([]string{"kustomization.yaml", "kustomization.yml", "Kustomization"}, entry.Name()) {
			for _, name := range referredTo(path) {
				if within, err := filepath.Rel(root, name); err == nil && strings.HasPrefix(within, "..") {
					elsewhere = append(elsewhere, name)
				}
			}
		}
		return nil
	})
}

// referredTo returns all existing files and directories named in any field of a kustomization.
func referredTo(kustomization string) []string {
	text, err := os.ReadFile(filepath.Clean(kustomization))
	if err != nil {
		return nil
	}
	var fields any
	if yaml.Unmarshal(text, &fields) != nil {
		return nil
	}
	var names []string
	var walk func(any)
	walk = func(value any) {
		switch v := value.(type) {
		case map[string]any:
			for _, key := range slices.Sorted(maps.Keys(v)) {
				walk(v[key])
			}
		case []any:
			for _, item := range v {
				walk(item)
			}
		case string:
			name := filepath.Join(filepath.Dir(kustomization), v)
			if _, err := os.Stat(name); err == nil && v != "" {
				names = append(names, name)
			}
		}
	}
	walk(fields)
	return names
}

// changed returns the sorted names of the inputs whose hashes differ between `a` and `other`.
func (a *About) changed(other *About) []string {
	var names []string
	for name := range a.Contents {
		if a.Contents[name] != other.Contents[name] {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// sameWords reports whether `a` and `other` have the same command line and the same input file
// names.
func (a *About) sameWords(other *About) bool {
	return slices.Equal(a.Command, other.Command) && slices.Equal(a.Of, other.Of)
}

// partOf reports whether the results of `a` and `other` may belong to the same run, divided among
// machines by --shard. Hashes of programs may differ, because each machine may have compiled its
// own program.
func (a *About) partOf(other *About) bool {
	return slices.Equal(a.Command, other.Command) && !slices.ContainsFunc(a.changed(other), func(name string) bool {
		return !slices.Contains([]string{theProgram, theCommands, theSandbox}, name)
	})
}
