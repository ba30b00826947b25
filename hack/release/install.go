// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"io/fs"
	"path"

	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/api/types"
	"sigs.k8s.io/kustomize/kyaml/filesys"
	"sigs.k8s.io/yaml"
)

// installOf returns a manifest that installs config/default with the image pinned to its digest.
// config is the file system of the folder config.
func installOf(config fs.FS, image, digest string) ([]byte, error) {
	memory := filesys.MakeFsInMemory()
	err := fs.WalkDir(config, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		content, err := fs.ReadFile(config, name)
		if err != nil {
			return err
		}
		return memory.WriteFile(path.Join("config", name), content)
	})
	if err != nil {
		return nil, err
	}
	overlay, err := yaml.Marshal(types.Kustomization{
		Resources: []string{"../config/default"},
		Images:    []types.Image{{Name: defaultImage, NewName: image, Digest: digest}},
	})
	if err != nil {
		return nil, err
	}
	if err := memory.WriteFile("release/kustomization.yaml", overlay); err != nil {
		return nil, err
	}
	options := krusty.MakeDefaultOptions()
	// The namespace and the CRDs must be applied before the objects that depend on them.
	options.Reorder = krusty.ReorderOptionLegacy
	objects, err := krusty.MakeKustomizer(options).Run(memory, "release")
	if err != nil {
		return nil, fmt.Errorf("install.yaml: %w", err)
	}
	return objects.AsYaml()
}
