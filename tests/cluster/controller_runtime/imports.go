// Package controller_runtime imports what the tests of controller-runtime's cache import, so that they are in go.mod.
package controller_runtime

import (
	_ "sigs.k8s.io/controller-runtime/pkg/cache"
	_ "sigs.k8s.io/controller-runtime/pkg/envtest"
	_ "sigs.k8s.io/controller-runtime/pkg/log/zap"
)
