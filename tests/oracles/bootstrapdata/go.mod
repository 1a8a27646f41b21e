module slipway.example/oracles/bootstrapdata

go 1.26.0

require (
	github.com/blang/semver/v4 v4.0.0
	k8s.io/api v0.36.3
	sigs.k8s.io/cluster-api v1.14.2
	sigs.k8s.io/cluster-api/api v1.14.2
)
