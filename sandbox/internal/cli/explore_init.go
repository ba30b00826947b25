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
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"

	"tidekeeper.dev/tidekeeper/sandbox/internal/component"
	"tidekeeper.dev/tidekeeper/sandbox/internal/explore/lab"
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
		if path, err = relative(filepath.Dir(f.workload), path); err != nil {
			return err
		}
		d.Install = append(d.Install, path)
		for _, o := range objects {
			if o.GetKind() == "CustomResourceDefinition" {
				d.Definitions = append(d.Definitions, o)
			}
		}
	}
	if d.Sample, err = relative(filepath.Dir(f.workload), f.init); err != nil {
		return err
	}
	text, err := d.Text()
	if err != nil {
		return fmt.Errorf("--init %s: %w", f.init, err)
	}
	if err := writeNew(f.workload, []byte(text)); err != nil {
		return fmt.Errorf("--workload: %w", err)
	}
	_, err = workload.Read(f.workload)
	fmt.Fprintf(cmd.OutOrStdout(), "%s is written. Look at its steps, then try it without faults:\n  sandbox explore --workload %s --dry-run -- PROGRAM [ARGUMENTS...]\n", f.workload, f.workload)
	return err
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
	if lab.IsKustomization(path) {
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
