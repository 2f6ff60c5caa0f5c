"""Trino's functions that this engine refuses, with reasons.

A line ``! reason`` precedes the signatures that it refuses.
"""

from __future__ import annotations

from typing import Final


def _rows(text: str) -> str:
    r"""Return rows of a table of functions, each with its reason.

    >>> _rows("! it needs a terminal\nrgb(bigint) -> color")
    'rgb(bigint) -> color ! it needs a terminal\n'
    """
    rows, reason = [], ""
    for line in filter(None, text.splitlines()):
        if line.startswith("! "):
            reason = line
        else:
            rows.append(f"{line} {reason}\n")
    return "".join(rows)


SCALARS: Final = _rows("""
! its type, a sketch, does not exist in Spark with Trino's content
empty_approx_set() -> hyperloglog
intersection_cardinality(setdigest, setdigest) -> bigint
jaccard_index(setdigest, setdigest) -> double
hash_counts(setdigest) -> map(bigint,smallint)
value_at_quantile(qdigest(bigint), double) -> bigint
value_at_quantile(qdigest(double), double) -> double
value_at_quantile(qdigest(real), double) -> real
value_at_quantile(tdigest, double) -> double
values_at_quantiles(qdigest(bigint), array(double)) -> array(bigint)
values_at_quantiles(qdigest(double), array(double)) -> array(double)
values_at_quantiles(qdigest(real), array(double)) -> array(real)
values_at_quantiles(tdigest, array(double)) -> array(double)
quantile_at_value(qdigest(bigint), bigint) -> double
quantile_at_value(qdigest(double), double) -> double
quantile_at_value(qdigest(real), real) -> double
! Spark SQL has no such hash
spooky_hash_v2_32(varbinary) -> varbinary
spooky_hash_v2_64(varbinary) -> varbinary
! probability distributions are not supported
beta_cdf(double, double, double) -> double
inverse_beta_cdf(double, double, double) -> double
normal_cdf(double, double, double) -> double
inverse_normal_cdf(double, double, double) -> double
t_cdf(double, double) -> double
t_pdf(double, double) -> double
wilson_interval_lower(bigint, bigint, double) -> double
wilson_interval_upper(bigint, bigint, double) -> double
! Teradata patterns are not supported: date_format and date_parse take MySQL patterns
to_char(timestamp(6) with time zone, varchar) -> varchar
to_date(varchar, varchar) -> date
to_timestamp(varchar, varchar) -> timestamp(3)
! machine learning is not supported
classify(map(bigint,double), classifier(bigint)) -> bigint
classify(map(bigint,double), classifier(varchar)) -> varchar
regress(map(bigint,double), regressor) -> double
features(double) -> map(bigint,double)
features(double, double) -> map(bigint,double)
features(double, double, double) -> map(bigint,double)
features(double, double, double, double) -> map(bigint,double)
features(double, double, double, double, double) -> map(bigint,double)
features(double, double, double, double, double, double) -> map(bigint,double)
features(double, double, double, double, double, double, double) -> map(bigint,double)
features(double, double, double, double, double, double, double, double) -> map(bigint,double)
features(double, double, double, double, double, double, double, double, double) -> map(bigint,double)
features(double, double, double, double, double, double, double, double, double, double) -> map(bigint,double)
! its type, MongoDB's name of a document, does not exist here
objectid() -> objectid
objectid(varchar) -> objectid
objectid_timestamp(objectid) -> timestamp(3) with time zone
timestamp_objectid(timestamp(0) with time zone) -> objectid
! geospatial types do not exist here
bing_tile(integer, integer, integer) -> bingtile
bing_tile(varchar) -> bingtile
bing_tile_at(double, double, integer) -> bingtile
bing_tile_coordinates(bingtile) -> row(x integer, y integer)
bing_tile_polygon(bingtile) -> geometry
bing_tile_quadkey(bingtile) -> varchar
bing_tile_zoom_level(bingtile) -> tinyint
bing_tiles_around(double, double, integer) -> array(bingtile)
bing_tiles_around(double, double, integer, double) -> array(bingtile)
from_encoded_polyline(varchar) -> geometry
from_geojson_geometry(varchar) -> sphericalgeography
geometry_from_hadoop_shape(varbinary) -> geometry
geometry_invalid_reason(geometry) -> varchar
geometry_nearest_points(geometry, geometry) -> row(geometry, geometry)
geometry_to_bing_tiles(geometry, integer) -> array(bingtile)
geometry_union(array(geometry)) -> geometry
line_interpolate_point(geometry, double) -> geometry
line_interpolate_points(geometry, double) -> array(geometry)
line_locate_point(geometry, geometry) -> double
simplify_geometry(geometry, double) -> geometry
spatial_partitions(kdbtree, geometry) -> array(integer)
spatial_partitions(kdbtree, geometry, double) -> array(integer)
st_area(geometry) -> double
st_area(sphericalgeography) -> double
st_asbinary(geometry) -> varbinary
st_astext(geometry) -> varchar
st_boundary(geometry) -> geometry
st_buffer(geometry, double) -> geometry
st_centroid(geometry) -> geometry
st_contains(geometry, geometry) -> boolean
st_convexhull(geometry) -> geometry
st_coorddim(geometry) -> tinyint
st_crosses(geometry, geometry) -> boolean
st_difference(geometry, geometry) -> geometry
st_dimension(geometry) -> tinyint
st_disjoint(geometry, geometry) -> boolean
st_distance(geometry, geometry) -> double
st_distance(sphericalgeography, sphericalgeography) -> double
st_endpoint(geometry) -> geometry
st_envelope(geometry) -> geometry
st_envelopeaspts(geometry) -> array(geometry)
st_equals(geometry, geometry) -> boolean
st_exteriorring(geometry) -> geometry
st_geometries(geometry) -> array(geometry)
st_geometryfromtext(varchar) -> geometry
st_geometryn(geometry, integer) -> geometry
st_geometrytype(geometry) -> varchar
st_geomfrombinary(varbinary) -> geometry
st_geomfromkml(varchar) -> geometry
st_interiorringn(geometry, integer) -> geometry
st_interiorrings(geometry) -> array(geometry)
st_intersection(geometry, geometry) -> geometry
st_intersects(geometry, geometry) -> boolean
st_isclosed(geometry) -> boolean
st_isempty(geometry) -> boolean
st_isring(geometry) -> boolean
st_issimple(geometry) -> boolean
st_isvalid(geometry) -> boolean
st_length(geometry) -> double
st_length(sphericalgeography) -> double
st_linefromtext(varchar) -> geometry
st_linestring(array(geometry)) -> geometry
st_multipoint(array(geometry)) -> geometry
st_numgeometries(geometry) -> integer
st_numinteriorring(geometry) -> bigint
st_numpoints(geometry) -> bigint
st_overlaps(geometry, geometry) -> boolean
st_point(double, double) -> geometry
st_pointn(geometry, integer) -> geometry
st_points(geometry) -> array(geometry)
st_polygon(varchar) -> geometry
st_relate(geometry, geometry, varchar) -> boolean
st_startpoint(geometry) -> geometry
st_symdifference(geometry, geometry) -> geometry
st_touches(geometry, geometry) -> boolean
st_union(geometry, geometry) -> geometry
st_within(geometry, geometry) -> boolean
st_x(geometry) -> double
st_xmax(geometry) -> double
st_xmin(geometry) -> double
st_y(geometry) -> double
st_ymax(geometry) -> double
st_ymin(geometry) -> double
to_encoded_polyline(geometry) -> varchar
to_geojson_geometry(sphericalgeography) -> varchar
to_geometry(sphericalgeography) -> geometry
to_spherical_geography(geometry) -> sphericalgeography
! colors of a terminal do not exist here
bar(double, bigint) -> varchar
bar(double, bigint, color, color) -> varchar
color(double, color, color) -> color
color(double, double, double, color, color) -> color
color(varchar(x)) -> color
render(bigint, color) -> varchar(35)
render(boolean) -> varchar(16)
render(double, color) -> varchar(41)
render(varchar(x), color) -> varchar
rgb(bigint, bigint, bigint) -> color
! Spark SQL has no stemmer
word_stem(varchar(x)) -> varchar(x)
word_stem(varchar(x), varchar(2)) -> varchar(x)
! it is useful only to Trino's administrators
parse_presto_data_size(varchar(x)) -> decimal(38,0)
parse_data_size(varchar(x)) -> decimal(38,0)
""")

AGGREGATES: Final = _rows("""
! its type, a sketch, does not exist in Spark with Trino's content
approx_set(bigint) -> hyperloglog
approx_set(double) -> hyperloglog
approx_set(varchar(x)) -> hyperloglog
merge(hyperloglog) -> hyperloglog
merge(qdigest(V)) V -> qdigest(V)
merge(tdigest) -> tdigest
make_set_digest(T) T -> setdigest
merge_set_digest(setdigest) -> setdigest
qdigest_agg(bigint) -> qdigest(bigint)
qdigest_agg(bigint, bigint) -> qdigest(bigint)
qdigest_agg(bigint, bigint, double) -> qdigest(bigint)
qdigest_agg(double) -> qdigest(double)
qdigest_agg(double, bigint) -> qdigest(double)
qdigest_agg(double, bigint, double) -> qdigest(double)
qdigest_agg(real) -> qdigest(real)
qdigest_agg(real, bigint) -> qdigest(real)
qdigest_agg(real, bigint, double) -> qdigest(real)
tdigest_agg(double) -> tdigest
tdigest_agg(double, double) -> tdigest
! Trino's approximation cannot be reproduced, and another would differ
approx_most_frequent(bigint, bigint, bigint) -> map(bigint,bigint)
approx_most_frequent(bigint, varchar, bigint) -> map(varchar,bigint)
numeric_histogram(bigint, double) -> map(double,double)
numeric_histogram(bigint, double, double) -> map(double,double)
numeric_histogram(bigint, real) -> map(real,real)
numeric_histogram(bigint, real, double) -> map(real,real)
! machine learning is not supported
learn_classifier(bigint, map(bigint,double)) -> classifier(bigint)
learn_classifier(double, map(bigint,double)) -> classifier(bigint)
learn_classifier(varchar, map(bigint,double)) -> classifier(varchar)
learn_regressor(bigint, map(bigint,double)) -> regressor
learn_regressor(double, map(bigint,double)) -> regressor
learn_libsvm_classifier(bigint, map(bigint,double), varchar(x)) -> classifier(bigint)
learn_libsvm_classifier(double, map(bigint,double), varchar) -> classifier(bigint)
learn_libsvm_classifier(varchar, map(bigint,double), varchar) -> classifier(varchar)
learn_libsvm_regressor(bigint, map(bigint,double), varchar) -> regressor
learn_libsvm_regressor(double, map(bigint,double), varchar) -> regressor
evaluate_classifier_predictions(bigint, bigint) -> varchar
evaluate_classifier_predictions(varchar(x), varchar(y)) -> varchar
! geospatial types do not exist here
convex_hull_agg(geometry) -> geometry
geometry_union_agg(geometry) -> geometry
spatial_partitioning(geometry) -> varchar
spatial_partitioning(geometry, integer) -> varchar
""")

REFUSED: Final[dict[str, str]] = {
    line.split("(")[0]: line.split(" ! ")[1] for line in (SCALARS + AGGREGATES).splitlines()
}
"""Reasons by name, for functions without any supported signature."""
