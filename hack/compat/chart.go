// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"

	"sigs.k8s.io/yaml"
)

// addChartValues adds the chart's values with their defaults.
func (s surface) addChartValues(file string) error {
	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	var values map[string]any
	if err := yaml.Unmarshal(text, &values); err != nil {
		return err
	}
	return s.addValues("value", values)
}

func (s surface) addValues(path string, values map[string]any) error {
	for key, value := range values {
		name := strings.Replace(path+"."+key, "value.", "value ", 1)
		if inner, ok := value.(map[string]any); ok && len(inner) > 0 {
			if err := s.addValues(name, inner); err != nil {
				return err
			}
			continue
		}
		text, err := json.Marshal(value)
		if err != nil {
			return err
		}
		s[name] = thing{Default: string(text)}
	}
	return nil
}

// valuesSchema is the file name of the schema of the chart's values.
const valuesSchema = "values.schema.json"

// readValuesSchema reads the schema of a chart's values.
func readValuesSchema(file string) (*jsonSchema, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	var content any
	if err := json.Unmarshal(text, &content); err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	if text, err = json.Marshal(joinTypes(content)); err != nil {
		return nil, err
	}
	schema := &jsonSchema{}
	if err := json.Unmarshal(text, schema); err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	return schema, nil
}

// joinTypes replaces each list of types by one text, because the schemas of CRDs have one type.
func joinTypes(content any) any {
	switch content := content.(type) {
	case map[string]any:
		for key, value := range content {
			if types, ok := value.([]any); ok && key == "type" {
				content[key] = strings.Trim(fmt.Sprint(types), "[]")
				continue
			}
			content[key] = joinTypes(value)
		}
	case []any:
		for i := range content {
			content[i] = joinTypes(content[i])
		}
	}
	return content
}

// compareValues compares the schemas of the values of two charts.
func compareValues(before, after *jsonSchema) []breach {
	found := compareSchemas("value", before, after)
	for i := range found {
		found[i].name = strings.Replace(found[i].name, "value.", "value ", 1)
	}
	return found
}
