// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/jsonmergepatch"
	"k8s.io/cli-runtime/pkg/resource"
	"sigs.k8s.io/controller-runtime/pkg/client"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
)

// lastApplied is where kubectl apply keeps the manifest that it applied last.
const lastApplied = "kubectl.kubernetes.io/last-applied-configuration"

// Who writes when kubectl applies, in its two ways.
const (
	clientSideApplier = "kubectl-client-side-apply"
	serverSideApplier = "kubectl"
)

// readManifests hands over each object in files, directories or stdin (-), with
// where it is from, as kubectl apply reads them. No cluster is asked.
func (a *app) readManifests(files resource.FilenameOptions, each func(o *unstructured.Unstructured, source string)) error {
	builder := resource.NewLocalBuilder().Unstructured().Flatten()
	named := files
	named.Filenames = slices.DeleteFunc(slices.Clone(files.Filenames), func(f string) bool { return f == "-" })
	if len(named.Filenames) > 0 || named.Kustomize != "" {
		builder.FilenameParam(false, &named)
	}
	if len(named.Filenames) < len(files.Filenames) {
		builder.Stream(a.in, "standard input")
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

// readPools returns the NodePools in manifests, and how many objects of other
// kinds there are beside them.
func (a *app) readPools(files resource.FilenameOptions) (pools []*unstructured.Unstructured, others int, err error) {
	var wrong error
	err = a.readManifests(files, func(o *unstructured.Unstructured, source string) {
		name, kind := o.GetName(), o.GroupVersionKind()
		switch {
		case kind.Group != tidekeeperv1.SchemeGroupVersion.Group || kind.Kind != poolKind:
			others++
		case kind != tidekeeperv1.SchemeGroupVersion.WithKind(poolKind):
			wrong = fmt.Errorf("%s: apiVersion %s: only %s is known", source, o.GetAPIVersion(), tidekeeperv1.SchemeGroupVersion)
		case name == "":
			wrong = fmt.Errorf("%s: a NodePool has no name", source)
		case slices.ContainsFunc(pools, func(p *unstructured.Unstructured) bool { return p.GetName() == name }):
			wrong = fmt.Errorf("%s: the NodePool %q is there twice", source, name)
		default:
			pools = append(pools, o)
		}
	})
	switch {
	case err != nil:
		return nil, 0, err
	case wrong != nil:
		return nil, 0, wrong
	case len(pools) == 0:
		return nil, 0, errors.New("there is no NodePool in what was given")
	default:
		return pools, others, nil
	}
}

// dryApply returns what the API server would make of a pool (live; nil: there is
// none) if the manifest was applied, without doing so. It is applied the way it
// was the last time, as only so it takes away what was in the manifest then and
// no longer is: as kubectl apply does it, or server-side by whoever did.
func dryApply(ctx context.Context, c client.Client, manifest *unstructured.Unstructured, live *tidekeeperv1.NodePool) (*tidekeeperv1.NodePool, error) {
	if live != nil && live.Annotations[lastApplied] != "" {
		return dryPatch(ctx, c, manifest, live)
	}
	manifest = manifest.DeepCopy()
	manifest.SetManagedFields(nil)
	err := c.Apply(ctx, client.ApplyConfigurationFromUnstructured(manifest), client.DryRunAll, client.ForceOwnership, client.FieldOwner(applierOf(live)))
	if err != nil {
		return nil, err
	}
	pool := &tidekeeperv1.NodePool{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(manifest.Object, pool); err != nil {
		return nil, fmt.Errorf("the answer of the API server: %w", err)
	}
	return pool, nil
}

// dryPatch is dryApply for what kubectl apply has applied without --server-side.
func dryPatch(ctx context.Context, c client.Client, manifest *unstructured.Unstructured, live *tidekeeperv1.NodePool) (*tidekeeperv1.NodePool, error) {
	// The annotation stands in the manifest too, or it would be taken away.
	manifest = manifest.DeepCopy()
	annotations := manifest.GetAnnotations()
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[lastApplied] = live.Annotations[lastApplied]
	manifest.SetAnnotations(annotations)
	modified, err := json.Marshal(manifest)
	if err != nil {
		return nil, err
	}
	current, err := json.Marshal(live)
	if err != nil {
		return nil, err
	}
	patch, err := jsonmergepatch.CreateThreeWayJSONMergePatch([]byte(live.Annotations[lastApplied]), modified, current)
	if err != nil {
		return nil, fmt.Errorf("compare with what was applied last (the annotation %s): %w", lastApplied, err)
	}
	pool := live.DeepCopy()
	err = c.Patch(ctx, pool, client.RawPatch(types.MergePatchType, patch), client.DryRunAll, client.FieldOwner(clientSideApplier), client.FieldValidation(metav1.FieldValidationStrict))
	return pool, withoutPatch(err, live.Name)
}

// withoutPatch leaves out of an error about a field that does not exist the whole
// patch that it stands in.
func withoutPatch(err error, name string) error {
	status := apierrors.APIStatus(nil)
	if !apierrors.IsInvalid(err) || !errors.As(err, &status) || status.Status().Details == nil {
		return err
	}
	for _, cause := range status.Status().Details.Causes {
		if i := strings.LastIndex(cause.Message, "unknown field "); cause.Field == "patch" && i >= 0 {
			return fmt.Errorf("NodePool %q: %s", name, cause.Message[i:])
		}
	}
	return err
}

// applierOf returns who has applied the pool server-side: a GitOps tool has a
// name of its own. Without one, or if there are several, it is kubectl.
func applierOf(live *tidekeeperv1.NodePool) string {
	var names []string
	if live != nil {
		for _, f := range live.ManagedFields {
			if f.Operation == metav1.ManagedFieldsOperationApply && f.Subresource == "" {
				names = append(names, f.Manager)
			}
		}
	}
	if len(names) != 1 {
		return serverSideApplier
	}
	return names[0]
}
