// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package cmdutil

import (
	"context"
	"errors"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// PageSize is how many objects are in memory at a time, as with kubectl.
const PageSize = 500

// EachPage reads a list page by page, for readers that keep only a little of each
// object: there may be more of them than this machine has memory for. If it
// takes so long that the first page has expired, it continues with the objects as
// they are by then.
func EachPage[L client.ObjectList](ctx context.Context, c client.Reader, empty func() L, read func(page L), options ...client.ListOption) error {
	for token := ""; ; {
		page := empty()
		err := c.List(ctx, page, append([]client.ListOption{client.Limit(PageSize), client.Continue(token)}, options...)...)
		if next := freshToken(err); token != "" && next != "" {
			token = next
			continue
		}
		if err != nil {
			return err
		}
		read(page)
		if token = page.GetContinue(); token == "" {
			return nil
		}
	}
}

// freshToken returns the token that the API server offers instead of a token that
// has expired.
func freshToken(err error) string {
	if status := apierrors.APIStatus(nil); apierrors.IsResourceExpired(err) && errors.As(err, &status) {
		return status.Status().Continue
	}
	return ""
}
