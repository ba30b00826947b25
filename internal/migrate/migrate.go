// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package migrate

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	applyv1 "tidekeeper.dev/tidekeeper/api/applyconfiguration/api/v1"
	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
	"tidekeeper.dev/tidekeeper/internal/term"
	"tidekeeper.dev/tidekeeper/internal/text"
)

// Kinds of the two original operators, and Deployment, which can have an annotation that requests
// an Eru.
var (
	NodePoolKind   = schema.GroupVersionKind{Group: "nodes.lailin.xyz", Version: "v1", Kind: "NodePool"}
	EruKind        = schema.GroupVersionKind{Group: "mtsre.meitu.com", Version: "v1", Kind: "Eru"}
	DeploymentKind = schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"}
)

// OptInAnnotation is the Deployment annotation that requests an Eru from the original operator. Its
// value must be "true".
const OptInAnnotation = "mtsre.meitu.com/eru"

// Object is an input object of the conversion.
type Object struct {
	*unstructured.Unstructured
	// Source is the name of the file that contains the object. It is "" for an object in the
	// cluster.
	Source string
}

// Options configures a conversion.
type Options struct {
	// TimeZone is the time zone in which the original operator ran. If it is "", the conversion
	// assumes UTC and adds a remark.
	TimeZone string
	// Suspended suspends every converted schedule, so that the converted objects can be created
	// while the original operator is still running.
	Suspended bool
	// Complete is set if the input contains all Deployments. A Deployment that the input lacks then
	// does not exist.
	Complete bool
}

// Result holds the converted objects, manual steps and remarks. The objects are sorted by namespace
// and name.
type Result struct {
	Pools       []*applyv1.NodePoolApplyConfiguration
	Restarts    []*applyv1.ScheduledRestartApplyConfiguration
	ManualSteps []ManualStep
	Remarks     []Remark
}

// key identifies an object among the objects of its kind.
type key struct{ namespace, name string }

func keyOf(o Object) key { return key{o.GetNamespace(), o.GetName()} }

func (k key) String() string { return k.namespace + "/" + k.name }

// Convert converts objects of the two original operators. If objects of the same kind have the same
// name, it converts only the first and adds remarks about the others. It ignores other kinds.
func Convert(objects []Object, options Options) Result {
	var result Result
	originals := map[schema.GroupVersionKind]map[key]Object{NodePoolKind: {}, EruKind: {}, DeploymentKind: {}}
	others := map[string]int{}
	for _, o := range objects {
		kind := o.GroupVersionKind()
		r := remarks{object: describe(o)}
		of, known := originals[kind]
		switch {
		case kind.Group == tidekeeperv1.GroupName:
			r.note("", "is already Tidekeeper's", "")
		case !known && (kind.Group == NodePoolKind.Group || kind.Group == EruKind.Group):
			r.leftOut("apiVersion", "only "+NodePoolKind.GroupVersion().String()+" NodePool and "+EruKind.GroupVersion().String()+" Eru can be read", "convert it to one of these")
		case !known:
			others[kind.Kind]++
		case kind == DeploymentKind && !mentioned(o):
			of[keyOf(o)] = o
		case !named(o, &r) || dying(o, &r):
		default:
			if first, twice := of[keyOf(o)]; twice {
				r.leftOut("", "was read before, from "+origin(first), "keep one of the two")
			} else {
				of[keyOf(o)] = o
			}
		}
		result.Remarks = append(result.Remarks, r.list...)
	}
	if len(others) > 0 {
		result.Remarks = append(result.Remarks, Remark{Severity: Note, Why: othersSay(others)})
	}
	described := map[string]string{}
	for _, o := range sorted(originals[NodePoolKind]) {
		described[o.GetName()] = describe(o)
		result.nodePool(o)
	}
	result.handOverNodes(described)
	result.restarts(originals[EruKind], originals[DeploymentKind], options)
	return result
}

// mentioned reports whether a Deployment has the original operator's opt-in annotation, with any
// value.
func mentioned(o Object) bool {
	_, found := o.GetAnnotations()[OptInAnnotation]
	return found
}

func sorted(objects map[key]Object) []Object {
	keys := slices.SortedFunc(maps.Keys(objects), func(a, b key) int { return strings.Compare(a.String(), b.String()) })
	list := make([]Object, len(keys))
	for i, k := range keys {
		list[i] = objects[k]
	}
	return list
}

// Maximum lengths of names and kinds in messages, in bytes. Names and kinds in files can be
// arbitrarily long.
const (
	maxName = 400
	maxKind = 63
)

// describe formats an object's kind, name and source for messages.
func describe(o Object) string {
	name := o.GetKind() + " " + o.GetName()
	if o.GetNamespace() != "" {
		name = o.GetKind() + " " + o.GetNamespace() + "/" + o.GetName()
	}
	name = text.Shorten(name, maxName)
	if o.Source != "" {
		name += " (" + o.Source + ")"
	}
	return oneLine(name)
}

func origin(o Object) string { return cmp.Or(o.Source, "the cluster") }

// othersSay returns a message that states the number and the kinds of ignored objects.
func othersSay(others map[string]int) string {
	var total int
	for _, n := range others {
		total += n
	}
	kinds := slices.Sorted(maps.Keys(others))
	if len(kinds) > 5 {
		kinds = append(kinds[:5], "…")
	}
	for i, k := range kinds {
		kinds[i] = text.Shorten(k, maxKind)
	}
	return fmt.Sprintf("%s of other kinds ignored (%s)", term.Plural(total, "object"), strings.Join(kinds, ", "))
}
