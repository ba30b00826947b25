// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"reflect"
	"slices"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

type crd = apiextensionsv1.CustomResourceDefinition

// compareKinds returns the breaking changes between the CRDs of two versions, keyed by name.
func compareKinds(before, after map[string]*crd) []breach {
	var found []breach
	for name, was := range before {
		is, ok := after[name]
		if !ok {
			found = append(found, breach{"kind " + was.Spec.Names.Kind, "is gone"})
			continue
		}
		found = append(found, compareCRDs(was, is)...)
	}
	return found
}

func compareCRDs(before, after *crd) []breach {
	kind := before.Spec.Names.Kind
	name := "kind " + kind
	var found []breach
	add := func(format string, args ...any) {
		found = append(found, breach{name, fmt.Sprintf(format, args...)})
	}
	was, is := before.Spec.Names, after.Spec.Names
	for _, c := range []struct{ what, before, after string }{
		{"kind", was.Kind, is.Kind},
		{"kind of lists", was.ListKind, is.ListKind},
		{"plural", was.Plural, is.Plural},
		{"singular", was.Singular, is.Singular},
		{"scope", string(before.Spec.Scope), string(after.Spec.Scope)},
	} {
		if c.before != c.after {
			add("the %s was %s, and is %s", c.what, c.before, c.after)
		}
	}
	for _, short := range was.ShortNames {
		if !slices.Contains(is.ShortNames, short) {
			add("the short name %s is gone", short)
		}
	}
	for _, category := range was.Categories {
		if !slices.Contains(is.Categories, category) {
			add("the category %s is gone", category)
		}
	}
	for _, v := range before.Spec.Versions {
		at := slices.IndexFunc(after.Spec.Versions, func(other apiextensionsv1.CustomResourceDefinitionVersion) bool { return other.Name == v.Name })
		if at < 0 || v.Served && !after.Spec.Versions[at].Served {
			add("the version %s is no longer served", v.Name)
			continue
		}
		found = append(found, compareVersions("field "+kind, name, &v, &after.Spec.Versions[at])...)
	}
	return found
}

func compareVersions(field, name string, before, after *apiextensionsv1.CustomResourceDefinitionVersion) []breach {
	found := compareSchemas(field, before.Schema.OpenAPIV3Schema, after.Schema.OpenAPIV3Schema)
	if before.Subresources != nil && !reflect.DeepEqual(before.Subresources, after.Subresources) {
		found = append(found, breach{name, "the subresources differ"})
	}
	for _, column := range before.AdditionalPrinterColumns {
		at := slices.IndexFunc(after.AdditionalPrinterColumns, func(c apiextensionsv1.CustomResourceColumnDefinition) bool { return c.Name == column.Name })
		if at < 0 {
			found = append(found, breach{name, "the column " + column.Name + " is gone"})
		} else if is := after.AdditionalPrinterColumns[at].JSONPath; is != column.JSONPath {
			found = append(found, breach{name, fmt.Sprintf("the column %s showed %s, and shows %s", column.Name, column.JSONPath, is)})
		}
	}
	for _, selectable := range before.SelectableFields {
		if !slices.Contains(after.SelectableFields, selectable) {
			found = append(found, breach{name, "the field " + selectable.JSONPath + " cannot be selected by"})
		}
	}
	return found
}
