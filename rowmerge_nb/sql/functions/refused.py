"""Trino's functions that this engine refuses, with reasons."""

from __future__ import annotations

from typing import Final

SCALARS: Final = """
empty_approx_set() -> hyperloglog ! its type, a sketch, does not exist in Spark with Trino's content
intersection_cardinality(setdigest, setdigest) -> bigint ! its type, a sketch, does not exist in Spark with Trino's content
jaccard_index(setdigest, setdigest) -> double ! its type, a sketch, does not exist in Spark with Trino's content
hash_counts(setdigest) -> map(bigint,smallint) ! its type, a sketch, does not exist in Spark with Trino's content
value_at_quantile(qdigest(bigint), double) -> bigint ! its type, a sketch, does not exist in Spark with Trino's content
value_at_quantile(qdigest(double), double) -> double ! its type, a sketch, does not exist in Spark with Trino's content
value_at_quantile(qdigest(real), double) -> real ! its type, a sketch, does not exist in Spark with Trino's content
value_at_quantile(tdigest, double) -> double ! its type, a sketch, does not exist in Spark with Trino's content
values_at_quantiles(qdigest(bigint), array(double)) -> array(bigint) ! its type, a sketch, does not exist in Spark with Trino's content
values_at_quantiles(qdigest(double), array(double)) -> array(double) ! its type, a sketch, does not exist in Spark with Trino's content
values_at_quantiles(qdigest(real), array(double)) -> array(real) ! its type, a sketch, does not exist in Spark with Trino's content
values_at_quantiles(tdigest, array(double)) -> array(double) ! its type, a sketch, does not exist in Spark with Trino's content
quantile_at_value(qdigest(bigint), bigint) -> double ! its type, a sketch, does not exist in Spark with Trino's content
quantile_at_value(qdigest(double), double) -> double ! its type, a sketch, does not exist in Spark with Trino's content
quantile_at_value(qdigest(real), real) -> double ! its type, a sketch, does not exist in Spark with Trino's content
spooky_hash_v2_32(varbinary) -> varbinary ! Spark SQL has no such hash
spooky_hash_v2_64(varbinary) -> varbinary ! Spark SQL has no such hash
beta_cdf(double, double, double) -> double ! distributions of probability are no part of this engine
inverse_beta_cdf(double, double, double) -> double ! distributions of probability are no part of this engine
normal_cdf(double, double, double) -> double ! distributions of probability are no part of this engine
inverse_normal_cdf(double, double, double) -> double ! distributions of probability are no part of this engine
t_cdf(double, double) -> double ! distributions of probability are no part of this engine
t_pdf(double, double) -> double ! distributions of probability are no part of this engine
wilson_interval_lower(bigint, bigint, double) -> double ! distributions of probability are no part of this engine
wilson_interval_upper(bigint, bigint, double) -> double ! distributions of probability are no part of this engine
to_char(timestamp(6) with time zone, varchar) -> varchar ! patterns of Teradata are no part of this engine: date_format and date_parse take those of MySQL
to_date(varchar, varchar) -> date ! patterns of Teradata are no part of this engine: date_format and date_parse take those of MySQL
to_timestamp(varchar, varchar) -> timestamp(3) ! patterns of Teradata are no part of this engine: date_format and date_parse take those of MySQL
classify(map(bigint,double), classifier(bigint)) -> bigint ! machine learning is no part of this engine
classify(map(bigint,double), classifier(varchar)) -> varchar ! machine learning is no part of this engine
regress(map(bigint,double), regressor) -> double ! machine learning is no part of this engine
features(double) -> map(bigint,double) ! machine learning is no part of this engine
features(double, double) -> map(bigint,double) ! machine learning is no part of this engine
features(double, double, double) -> map(bigint,double) ! machine learning is no part of this engine
features(double, double, double, double) -> map(bigint,double) ! machine learning is no part of this engine
features(double, double, double, double, double) -> map(bigint,double) ! machine learning is no part of this engine
features(double, double, double, double, double, double) -> map(bigint,double) ! machine learning is no part of this engine
features(double, double, double, double, double, double, double) -> map(bigint,double) ! machine learning is no part of this engine
features(double, double, double, double, double, double, double, double) -> map(bigint,double) ! machine learning is no part of this engine
features(double, double, double, double, double, double, double, double, double) -> map(bigint,double) ! machine learning is no part of this engine
features(double, double, double, double, double, double, double, double, double, double) -> map(bigint,double) ! machine learning is no part of this engine
objectid() -> objectid ! its type, MongoDB's name of a document, does not exist here
objectid(varchar) -> objectid ! its type, MongoDB's name of a document, does not exist here
objectid_timestamp(objectid) -> timestamp(3) with time zone ! its type, MongoDB's name of a document, does not exist here
timestamp_objectid(timestamp(0) with time zone) -> objectid ! its type, MongoDB's name of a document, does not exist here
bing_tile(integer, integer, integer) -> bingtile ! geospatial types do not exist here
bing_tile(varchar) -> bingtile ! geospatial types do not exist here
bing_tile_at(double, double, integer) -> bingtile ! geospatial types do not exist here
bing_tile_coordinates(bingtile) -> row(x integer, y integer) ! geospatial types do not exist here
bing_tile_polygon(bingtile) -> geometry ! geospatial types do not exist here
bing_tile_quadkey(bingtile) -> varchar ! geospatial types do not exist here
bing_tile_zoom_level(bingtile) -> tinyint ! geospatial types do not exist here
bing_tiles_around(double, double, integer) -> array(bingtile) ! geospatial types do not exist here
bing_tiles_around(double, double, integer, double) -> array(bingtile) ! geospatial types do not exist here
from_encoded_polyline(varchar) -> geometry ! geospatial types do not exist here
from_geojson_geometry(varchar) -> sphericalgeography ! geospatial types do not exist here
geometry_from_hadoop_shape(varbinary) -> geometry ! geospatial types do not exist here
geometry_invalid_reason(geometry) -> varchar ! geospatial types do not exist here
geometry_nearest_points(geometry, geometry) -> row(geometry, geometry) ! geospatial types do not exist here
geometry_to_bing_tiles(geometry, integer) -> array(bingtile) ! geospatial types do not exist here
geometry_union(array(geometry)) -> geometry ! geospatial types do not exist here
line_interpolate_point(geometry, double) -> geometry ! geospatial types do not exist here
line_interpolate_points(geometry, double) -> array(geometry) ! geospatial types do not exist here
line_locate_point(geometry, geometry) -> double ! geospatial types do not exist here
simplify_geometry(geometry, double) -> geometry ! geospatial types do not exist here
spatial_partitions(kdbtree, geometry) -> array(integer) ! geospatial types do not exist here
spatial_partitions(kdbtree, geometry, double) -> array(integer) ! geospatial types do not exist here
st_area(geometry) -> double ! geospatial types do not exist here
st_area(sphericalgeography) -> double ! geospatial types do not exist here
st_asbinary(geometry) -> varbinary ! geospatial types do not exist here
st_astext(geometry) -> varchar ! geospatial types do not exist here
st_boundary(geometry) -> geometry ! geospatial types do not exist here
st_buffer(geometry, double) -> geometry ! geospatial types do not exist here
st_centroid(geometry) -> geometry ! geospatial types do not exist here
st_contains(geometry, geometry) -> boolean ! geospatial types do not exist here
st_convexhull(geometry) -> geometry ! geospatial types do not exist here
st_coorddim(geometry) -> tinyint ! geospatial types do not exist here
st_crosses(geometry, geometry) -> boolean ! geospatial types do not exist here
st_difference(geometry, geometry) -> geometry ! geospatial types do not exist here
st_dimension(geometry) -> tinyint ! geospatial types do not exist here
st_disjoint(geometry, geometry) -> boolean ! geospatial types do not exist here
st_distance(geometry, geometry) -> double ! geospatial types do not exist here
st_distance(sphericalgeography, sphericalgeography) -> double ! geospatial types do not exist here
st_endpoint(geometry) -> geometry ! geospatial types do not exist here
st_envelope(geometry) -> geometry ! geospatial types do not exist here
st_envelopeaspts(geometry) -> array(geometry) ! geospatial types do not exist here
st_equals(geometry, geometry) -> boolean ! geospatial types do not exist here
st_exteriorring(geometry) -> geometry ! geospatial types do not exist here
st_geometries(geometry) -> array(geometry) ! geospatial types do not exist here
st_geometryfromtext(varchar) -> geometry ! geospatial types do not exist here
st_geometryn(geometry, integer) -> geometry ! geospatial types do not exist here
st_geometrytype(geometry) -> varchar ! geospatial types do not exist here
st_geomfrombinary(varbinary) -> geometry ! geospatial types do not exist here
st_geomfromkml(varchar) -> geometry ! geospatial types do not exist here
st_interiorringn(geometry, integer) -> geometry ! geospatial types do not exist here
st_interiorrings(geometry) -> array(geometry) ! geospatial types do not exist here
st_intersection(geometry, geometry) -> geometry ! geospatial types do not exist here
st_intersects(geometry, geometry) -> boolean ! geospatial types do not exist here
st_isclosed(geometry) -> boolean ! geospatial types do not exist here
st_isempty(geometry) -> boolean ! geospatial types do not exist here
st_isring(geometry) -> boolean ! geospatial types do not exist here
st_issimple(geometry) -> boolean ! geospatial types do not exist here
st_isvalid(geometry) -> boolean ! geospatial types do not exist here
st_length(geometry) -> double ! geospatial types do not exist here
st_length(sphericalgeography) -> double ! geospatial types do not exist here
st_linefromtext(varchar) -> geometry ! geospatial types do not exist here
st_linestring(array(geometry)) -> geometry ! geospatial types do not exist here
st_multipoint(array(geometry)) -> geometry ! geospatial types do not exist here
st_numgeometries(geometry) -> integer ! geospatial types do not exist here
st_numinteriorring(geometry) -> bigint ! geospatial types do not exist here
st_numpoints(geometry) -> bigint ! geospatial types do not exist here
st_overlaps(geometry, geometry) -> boolean ! geospatial types do not exist here
st_point(double, double) -> geometry ! geospatial types do not exist here
st_pointn(geometry, integer) -> geometry ! geospatial types do not exist here
st_points(geometry) -> array(geometry) ! geospatial types do not exist here
st_polygon(varchar) -> geometry ! geospatial types do not exist here
st_relate(geometry, geometry, varchar) -> boolean ! geospatial types do not exist here
st_startpoint(geometry) -> geometry ! geospatial types do not exist here
st_symdifference(geometry, geometry) -> geometry ! geospatial types do not exist here
st_touches(geometry, geometry) -> boolean ! geospatial types do not exist here
st_union(geometry, geometry) -> geometry ! geospatial types do not exist here
st_within(geometry, geometry) -> boolean ! geospatial types do not exist here
st_x(geometry) -> double ! geospatial types do not exist here
st_xmax(geometry) -> double ! geospatial types do not exist here
st_xmin(geometry) -> double ! geospatial types do not exist here
st_y(geometry) -> double ! geospatial types do not exist here
st_ymax(geometry) -> double ! geospatial types do not exist here
st_ymin(geometry) -> double ! geospatial types do not exist here
to_encoded_polyline(geometry) -> varchar ! geospatial types do not exist here
to_geojson_geometry(sphericalgeography) -> varchar ! geospatial types do not exist here
to_geometry(sphericalgeography) -> geometry ! geospatial types do not exist here
to_spherical_geography(geometry) -> sphericalgeography ! geospatial types do not exist here
bar(double, bigint) -> varchar ! colors of a terminal do not exist here
bar(double, bigint, color, color) -> varchar ! colors of a terminal do not exist here
color(double, color, color) -> color ! colors of a terminal do not exist here
color(double, double, double, color, color) -> color ! colors of a terminal do not exist here
color(varchar(x)) -> color ! colors of a terminal do not exist here
render(bigint, color) -> varchar(35) ! colors of a terminal do not exist here
render(boolean) -> varchar(16) ! colors of a terminal do not exist here
render(double, color) -> varchar(41) ! colors of a terminal do not exist here
render(varchar(x), color) -> varchar ! colors of a terminal do not exist here
rgb(bigint, bigint, bigint) -> color ! colors of a terminal do not exist here
word_stem(varchar(x)) -> varchar(x) ! Spark SQL has no stemmer
word_stem(varchar(x), varchar(2)) -> varchar(x) ! Spark SQL has no stemmer
parse_presto_data_size(varchar(x)) -> decimal(38,0) ! it is of use only to Trino's administrators
parse_data_size(varchar(x)) -> decimal(38,0) ! it is of use only to Trino's administrators
"""

AGGREGATES: Final = """
approx_set(bigint) -> hyperloglog ! its type, a sketch, does not exist in Spark with Trino's content
approx_set(double) -> hyperloglog ! its type, a sketch, does not exist in Spark with Trino's content
approx_set(varchar(x)) -> hyperloglog ! its type, a sketch, does not exist in Spark with Trino's content
merge(hyperloglog) -> hyperloglog ! its type, a sketch, does not exist in Spark with Trino's content
merge(qdigest(V)) V -> qdigest(V) ! its type, a sketch, does not exist in Spark with Trino's content
merge(tdigest) -> tdigest ! its type, a sketch, does not exist in Spark with Trino's content
make_set_digest(T) T -> setdigest ! its type, a sketch, does not exist in Spark with Trino's content
merge_set_digest(setdigest) -> setdigest ! its type, a sketch, does not exist in Spark with Trino's content
qdigest_agg(bigint) -> qdigest(bigint) ! its type, a sketch, does not exist in Spark with Trino's content
qdigest_agg(bigint, bigint) -> qdigest(bigint) ! its type, a sketch, does not exist in Spark with Trino's content
qdigest_agg(bigint, bigint, double) -> qdigest(bigint) ! its type, a sketch, does not exist in Spark with Trino's content
qdigest_agg(double) -> qdigest(double) ! its type, a sketch, does not exist in Spark with Trino's content
qdigest_agg(double, bigint) -> qdigest(double) ! its type, a sketch, does not exist in Spark with Trino's content
qdigest_agg(double, bigint, double) -> qdigest(double) ! its type, a sketch, does not exist in Spark with Trino's content
qdigest_agg(real) -> qdigest(real) ! its type, a sketch, does not exist in Spark with Trino's content
qdigest_agg(real, bigint) -> qdigest(real) ! its type, a sketch, does not exist in Spark with Trino's content
qdigest_agg(real, bigint, double) -> qdigest(real) ! its type, a sketch, does not exist in Spark with Trino's content
tdigest_agg(double) -> tdigest ! its type, a sketch, does not exist in Spark with Trino's content
tdigest_agg(double, double) -> tdigest ! its type, a sketch, does not exist in Spark with Trino's content
approx_most_frequent(bigint, bigint, bigint) -> map(bigint,bigint) ! Trino's approximation cannot be reproduced, and another would differ
approx_most_frequent(bigint, varchar, bigint) -> map(varchar,bigint) ! Trino's approximation cannot be reproduced, and another would differ
numeric_histogram(bigint, double) -> map(double,double) ! Trino's approximation cannot be reproduced, and another would differ
numeric_histogram(bigint, double, double) -> map(double,double) ! Trino's approximation cannot be reproduced, and another would differ
numeric_histogram(bigint, real) -> map(real,real) ! Trino's approximation cannot be reproduced, and another would differ
numeric_histogram(bigint, real, double) -> map(real,real) ! Trino's approximation cannot be reproduced, and another would differ
learn_classifier(bigint, map(bigint,double)) -> classifier(bigint) ! machine learning is no part of this engine
learn_classifier(double, map(bigint,double)) -> classifier(bigint) ! machine learning is no part of this engine
learn_classifier(varchar, map(bigint,double)) -> classifier(varchar) ! machine learning is no part of this engine
learn_regressor(bigint, map(bigint,double)) -> regressor ! machine learning is no part of this engine
learn_regressor(double, map(bigint,double)) -> regressor ! machine learning is no part of this engine
learn_libsvm_classifier(bigint, map(bigint,double), varchar(x)) -> classifier(bigint) ! machine learning is no part of this engine
learn_libsvm_classifier(double, map(bigint,double), varchar) -> classifier(bigint) ! machine learning is no part of this engine
learn_libsvm_classifier(varchar, map(bigint,double), varchar) -> classifier(varchar) ! machine learning is no part of this engine
learn_libsvm_regressor(bigint, map(bigint,double), varchar) -> regressor ! machine learning is no part of this engine
learn_libsvm_regressor(double, map(bigint,double), varchar) -> regressor ! machine learning is no part of this engine
evaluate_classifier_predictions(bigint, bigint) -> varchar ! machine learning is no part of this engine
evaluate_classifier_predictions(varchar(x), varchar(y)) -> varchar ! machine learning is no part of this engine
convex_hull_agg(geometry) -> geometry ! geospatial types do not exist here
geometry_union_agg(geometry) -> geometry ! geospatial types do not exist here
spatial_partitioning(geometry) -> varchar ! geospatial types do not exist here
spatial_partitioning(geometry, integer) -> varchar ! geospatial types do not exist here
"""

REFUSED: Final[dict[str, str]] = {
    line.split("(")[0]: line.split(" ! ")[1] for line in (SCALARS + AGGREGATES).splitlines() if line
}
"""Reasons by name, for functions without any supported signature."""
