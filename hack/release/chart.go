// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"io/fs"
	"path"
	"strings"
	"time"
)

// chartOf returns the packaged chart, which installs the image by its digest. It does not use helm
// package, because that adds the current time.
func chartOf(root fs.FS, version, image, digest string, platforms []platform, at time.Time) ([]byte, error) {
	var files []file
	err := fs.WalkDir(root, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || name == ".helmignore" {
			return err
		}
		content, err := fs.ReadFile(root, name)
		if err != nil {
			return err
		}
		switch name {
		case "Chart.yaml":
			content, err = setLines(content, map[string]string{"version": strings.TrimPrefix(version, "v"), "appVersion": version})
			content = append(content, annotations(version, image, digest, platforms)...)
		case "values.yaml":
			content, err = setLines(content, map[string]string{"  digest": fmt.Sprintf("%q", digest), "  repository": image})
		}
		files = append(files, file{name: path.Join("tidekeeper", name), mode: 0o644, content: content})
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("the chart: %w", err)
	}
	return archive(files, at)
}

// annotations returns Artifact Hub's annotations, which are appended to Chart.yaml.
func annotations(version, image, digest string, platforms []platform) string {
	var names []string
	for _, p := range platforms {
		names = append(names, p.OS+"/"+p.Architecture)
	}
	return fmt.Sprintf(`annotations:
  artifacthub.io/license: Apache-2.0
  artifacthub.io/operator: "true"
  artifacthub.io/prerelease: "%t"
  artifacthub.io/images: |
    - name: tidekeeper
      image: %s@%s
      platforms: [%s]
  artifacthub.io/crds: |
    - {kind: NodePool, version: v1, name: nodepools.tidekeeper.dev, displayName: Node pool, description: A group of nodes with the same labels and taints}
    - {kind: ScheduledRestart, version: v1, name: scheduledrestarts.tidekeeper.dev, displayName: Scheduled restart, description: Restarts of a workload by a schedule}
    - {kind: Freeze, version: v1, name: freezes.tidekeeper.dev, displayName: Freeze, description: A time in which no running pod is disturbed}
`, strings.Contains(version, "-"), image, digest, strings.Join(names, ", "))
}

// setLines sets fields in YAML by replacing their lines of the form "field: value". Each field must
// occur exactly once. All other lines, including comments, are kept.
func setLines(content []byte, fields map[string]string) ([]byte, error) {
	lines := strings.Split(string(content), "\n")
	for field, value := range fields {
		found := 0
		for i, line := range lines {
			if strings.HasPrefix(line, field+":") {
				lines[i] = field + ": " + value
				found++
			}
		}
		if found != 1 {
			return nil, fmt.Errorf("%q is there %d times, want once", strings.TrimSpace(field), found)
		}
	}
	return []byte(strings.Join(lines, "\n")), nil
}
