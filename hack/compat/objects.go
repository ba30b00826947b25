// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"sigs.k8s.io/yaml"
)

var (
	yamlBlock = regexp.MustCompile("(?ms)^```yaml\n(.*?)^```")
	separator = regexp.MustCompile(`(?m)^---$`)
)

// objects returns the complete objects of Tidekeeper's kinds in the samples and the documentation,
// as a single manifest. Later versions must accept them, because users have copied them.
func objects() (string, error) {
	var texts, kept []string
	for _, pattern := range []string{"config/samples/*.yaml", "README.md", "docs/*/*.md"} {
		files, err := filepath.Glob(pattern)
		if err != nil {
			return "", err
		}
		for _, file := range files {
			text, err := os.ReadFile(file)
			if err != nil {
				return "", err
			}
			if filepath.Ext(file) == ".yaml" {
				texts = append(texts, string(text))
			}
			for _, block := range yamlBlock.FindAllStringSubmatch(string(text), -1) {
				texts = append(texts, block[1])
			}
		}
	}
	for _, text := range texts {
		for _, document := range separator.Split(text, -1) {
			object := map[string]any{}
			// YAML blocks that cannot be parsed are excerpts of objects or other files.
			if err := yaml.Unmarshal([]byte(document), &object); err != nil {
				continue
			}
			group, _ := object["apiVersion"].(string)
			metadata, _ := object["metadata"].(map[string]any)
			if !strings.HasPrefix(group, "tidekeeper.dev/") || metadata["name"] == nil {
				continue
			}
			// The namespaces used in the documentation do not exist in the cluster to which the
			// objects are applied.
			delete(metadata, "namespace")
			manifest, err := yaml.Marshal(object)
			if err != nil {
				return "", err
			}
			kept = append(kept, string(manifest))
		}
	}
	return strings.Join(kept, "---\n"), nil
}
