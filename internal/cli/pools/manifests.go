// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package pools

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
	"tidekeeper.dev/tidekeeper/internal/cli/cmdutil"
)

// lastApplied is the annotation in which kubectl apply stores the previously applied manifest.
const lastApplied = "kubectl.kubernetes.io/last-applied-configuration"

// Field manager names of kubectl apply, for client-side and server-side apply.
const (
	clientSideApplier = "kubectl-client-side-apply"
	serverSideApplier = "kubectl"
)

// readPools returns the NodePools in manifest files, and the number of objects of other kinds.
func readPools(e *cmdutil.Env, files resource.FilenameOptions) (pools []*unstructured.Unstructured, others int, err error) {
	var wrong error
	err = cmdutil.ReadManifests(e.In, files, func(o *unstructured.Unstructured, source string) {
		name, kind := o.GetName(), o.GroupVersionKind()
		switch {
		case kind.Group != tidekeeperv1.SchemeGroupVersion.Group || kind.Kind != poolKind.Name:
			others++
		case kind != tidekeeperv1.SchemeGroupVersion.WithKind(poolKind.Name):
			wrong = fmt.Errorf("%s: apiVersion %s: write %s", source, o.GetAPIVersion(), tidekeeperv1.SchemeGroupVersion)
		case name == "":
			wrong = fmt.Errorf("%s: a NodePool without a name", source)
		case slices.ContainsFunc(pools, func(p *unstructured.Unstructured) bool { return p.GetName() == name }):
			wrong = fmt.Errorf("%s: NodePool %q appears twice", source, name)
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
		return nil, 0, errors.New("the manifests contain no NodePool")
	default:
		return pools, others, nil
	}
}

// dryApply returns the pool as the API server would store it after applying the manifest. live is
// the existing pool, or nil. dryApply uses the method by which the existing pool was last applied:
// client-side apply, or server-side apply with the same field manager. With the other method,
// fields that were deleted from the manifest would remain in the pool.
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

// dryPatch implements dryApply for a pool that was last applied by client-side kubectl apply.
func dryPatch(ctx context.Context, c client.Client, manifest *unstructured.Unstructured, live *tidekeeperv1.NodePool) (*tidekeeperv1.NodePool, error) {
	// Add the annotation lastApplied to the manifest, because the patch would otherwise remove the
	// annotation from the pool.
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

// withoutPatch shortens the API server's error message about an unknown field. The original message
// contains the entire patch.
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

// applierOf returns the field manager that applied the pool server-side, such as a GitOps tool. If
// there is no such field manager or more than one, it returns the field manager of kubectl.
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
