// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"

	"tidekeeper.dev/tidekeeper/sandbox/internal/component"
	"tidekeeper.dev/tidekeeper/sandbox/internal/explore/workload"
)

// initWorkload writes the file --workload with the steps of users on a sample object. install lists
// the manifests that the workload installs.
func initWorkload(cmd *cobra.Command, f exploreFlags, install []string) error {
	if f.workload == "" {
		return errors.New("--workload is missing: name the file to write")
	}
	d := workload.Draft{}
	var err error
	if d.Objects, err = objectsIn(f.init); err != nil {
		return fmt.Errorf("--init: %w", err)
	}
	for _, path := range install {
		objects, err := installed(cmd, path)
		if err != nil {
			return err
		}
		for _, o := range objects {
			if o.GetKind() == "CustomResourceDefinition" {
				d.Definitions = append(d.Definitions, o)
			}
		}
	}
	for _, path := range append(slices.Clone(install), f.init) {
		relative, err := fromFile(f.workload, path)
		if err != nil {
			return err
		}
		d.Install = append(d.Install, relative)
	}
	last := len(d.Install) - 1
	d.Install, d.Sample = d.Install[:last], d.Install[last]
	text, err := d.Text()
	if err != nil {
		return fmt.Errorf("--init %s: %w", f.init, err)
	}
	out, err := os.OpenFile(filepath.Clean(f.workload), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return fmt.Errorf("--workload: %w", err)
	}
	_, err = io.WriteString(out, text)
	if err = errors.Join(err, out.Close()); err != nil {
		return err
	}
	_, err = workload.Read(f.workload)
	fmt.Fprintf(cmd.OutOrStdout(), "%s is written. Look at its steps, then try it without faults:\n  sandbox explore --workload %s --dry-run -- PROGRAM [ARGUMENTS...]\n", f.workload, f.workload)
	return err
}

// fromFile returns a path relative to the directory of a file.
func fromFile(file, path string) (string, error) {
	dir, err := filepath.Abs(filepath.Dir(file))
	if err != nil {
		return "", err
	}
	if path, err = filepath.Abs(path); err != nil {
		return "", err
	}
	return filepath.Rel(dir, path)
}

// installed returns the objects of a manifest file, of the manifest files in a directory, or of a
// kustomization.
func installed(cmd *cobra.Command, path string) ([]*unstructured.Unstructured, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !info.IsDir() {
		return objectsIn(path)
	}
	if _, err := os.Stat(filepath.Join(path, "kustomization.yaml")); err == nil {
		build := exec.CommandContext(cmd.Context(), "/proc/self/exe")
		build.Args = []string{component.Kubectl, "kustomize", path}
		var complaint bytes.Buffer
		build.Stderr = &complaint
		text, err := build.Output()
		if err != nil {
			return nil, fmt.Errorf("%s: %w: %s", path, err, strings.TrimSpace(complaint.String()))
		}
		return objectsOf(path, bytes.NewReader(text))
	}
	var all []*unstructured.Unstructured
	for _, pattern := range []string{"*.yaml", "*.yml", "*.json"} {
		files, err := filepath.Glob(filepath.Join(path, pattern))
		if err != nil {
			return nil, err
		}
		for _, file := range files {
			objects, err := objectsIn(file)
			if err != nil {
				return nil, err
			}
			all = append(all, objects...)
		}
	}
	return all, nil
}

func objectsIn(file string) ([]*unstructured.Unstructured, error) {
	opened, err := os.Open(filepath.Clean(file))
	if err != nil {
		return nil, err
	}
	defer opened.Close()
	return objectsOf(file, opened)
}

// objectsOf decodes the objects of a manifest. The name of the manifest is for errors.
func objectsOf(name string, manifest io.Reader) ([]*unstructured.Unstructured, error) {
	var all []*unstructured.Unstructured
	for decoder := utilyaml.NewYAMLOrJSONDecoder(manifest, 4096); ; {
		object := &unstructured.Unstructured{}
		err := decoder.Decode(object)
		switch {
		case errors.Is(err, io.EOF):
			return all, nil
		case err != nil:
			return nil, fmt.Errorf("%s: it is not a manifest: %w", name, err)
		case len(object.Object) > 0:
			all = append(all, object)
		}
	}
}
