// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package migrate

import (
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
)

// named reports whether the API server would accept the object's name and namespace, which may be
// invalid in files. If not, it adds a remark to r.
func named(o Object, r *remarks) bool {
	switch {
	case o.GetName() == "":
		r.leftOut("metadata.name", "is missing", "set it")
	case len(validation.IsDNS1123Subdomain(o.GetName())) > 0:
		r.leftOut("metadata.name", "is not a valid name", "lower-case letters, digits, '-' and '.'")
	case o.GetNamespace() != "" && len(validation.IsDNS1123Label(o.GetNamespace())) > 0:
		r.leftOut("metadata.namespace", "is not a valid namespace", "lower-case letters, digits and '-'")
	case o.GroupVersionKind() == NodePoolKind && len(o.GetName()) > tidekeeperv1.MaxPoolNameLength:
		r.leftOut("metadata.name", "has more than 63 characters, and cannot become the label node-role.kubernetes.io/<name>", "create a pool with a shorter name and a selector")
	default:
		return true
	}
	return false
}

// dying reports whether the object is being deleted. If so, it adds a remark to r.
func dying(o Object, r *remarks) bool {
	if o.GetDeletionTimestamp() == nil {
		return false
	}
	r.leftOut("", "is being deleted", "wait until it is gone, or create a new one")
	return true
}

// tools lists the labels and annotations by which tools recognize the objects that they manage. If
// a converted object kept them, a tool would delete the converted object together with the
// original, or change it again and again.
var tools = []string{
	"kubectl.kubernetes.io/", "app.kubernetes.io/managed-by", "app.kubernetes.io/instance", "helm.sh/", "meta.helm.sh/", "argocd.argoproj.io/",
	"kustomize.toolkit.fluxcd.io/", "helm.toolkit.fluxcd.io/", "config.kubernetes.io/", "tidekeeper.dev/",
}

// carried returns the original object's labels and annotations that the converted object keeps. It
// adds remarks to r about other metadata of the original object.
func carried(o Object, r *remarks) (labels, annotations map[string]string) {
	labels, annotations = map[string]string{}, map[string]string{}
	for _, k := range slices.Sorted(maps.Keys(o.GetLabels())) {
		v := o.GetLabels()[k]
		switch {
		case among(tools, k):
			r.leftOut(index("metadata.labels", k), "belongs to the tool that manages the original", "have the tool manage the new object")
		case len(validation.IsQualifiedName(k)) > 0 || len(validation.IsValidLabelValue(v)) > 0:
			r.leftOut(index("metadata.labels", k), "is not a valid label", "")
		default:
			labels[k] = v
		}
	}
	for _, k := range slices.Sorted(maps.Keys(o.GetAnnotations())) {
		switch {
		case strings.HasPrefix(k, EruKind.Group+"/"), k == lastApplied:
			// Drop these annotations silently: the original operator's copies of the spec are
			// obsolete, and kubectl recreates its own annotation.
		case among(tools, k):
			r.leftOut(index("metadata.annotations", k), "belongs to the tool that manages the original", "have the tool manage the new object")
		case len(validation.IsQualifiedName(strings.ToLower(k))) > 0:
			r.leftOut(index("metadata.annotations", k), "is not a valid annotation", "")
		default:
			annotations[k] = o.GetAnnotations()[k]
		}
	}
	if owners := o.GetOwnerReferences(); len(owners) > 0 {
		r.leftOut("metadata.ownerReferences", "the new object is not deleted with its owner", "delete it when the owner is deleted")
	}
	if finalizers := o.GetFinalizers(); len(finalizers) > 0 {
		r.note("metadata.finalizers", "are for the original's controller to remove", "docs/tasks/move-from-the-original-operators.md says how to delete the original without it")
	}
	return labels, annotations
}

const lastApplied = "kubectl.kubernetes.io/last-applied-configuration"

// among reports whether the list contains the key. List entries with a trailing slash match keys
// with this prefix.
func among(list []string, key string) bool {
	return slices.ContainsFunc(list, func(g string) bool { return key == g || strings.HasSuffix(g, "/") && strings.HasPrefix(key, g) })
}
