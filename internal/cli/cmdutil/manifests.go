// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package cmdutil

import (
	"io"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/cli-runtime/pkg/resource"
)

// ReadManifests reads the objects in the given files and directories, or in stdin for the name "-".
// It calls `each` once per object, with the name of the object's file as the source. It parses
// manifests like kubectl apply, but sends no requests to the cluster.
func ReadManifests(stdin io.Reader, files resource.FilenameOptions, each func(o *unstructured.Unstructured, source string)) error {
	builder := resource.NewLocalBuilder().Unstructured().Flatten()
	named := files
	named.Filenames = slices.DeleteFunc(slices.Clone(files.Filenames), func(f string) bool { return f == "-" })
	if len(named.Filenames) > 0 || named.Kustomize != "" {
		builder.FilenameParam(false, &named)
	}
	if len(named.Filenames) < len(files.Filenames) {
		builder.Stream(stdin, "standard input")
	}
	return builder.Do().Visit(func(info *resource.Info, err error) error {
		if err != nil {
			return err
		}
		if o, ok := info.Object.(*unstructured.Unstructured); ok {
			each(o, info.Source)
		}
		return nil
	})
}
