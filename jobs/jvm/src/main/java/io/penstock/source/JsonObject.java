package io.penstock.source;

import com.fasterxml.jackson.core.JsonFactory;
import com.fasterxml.jackson.core.JsonParser;
import com.fasterxml.jackson.core.JsonToken;
import java.io.IOException;
import java.math.BigDecimal;
import java.math.RoundingMode;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.RowFactory;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.api.java.UDF1;
import org.apache.spark.sql.types.ArrayType;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DecimalType;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;

/**
 * The fields of a value that is exactly one JSON object, each null or of its declared type, as Spark's {@code from_json} reads them. Null
 * for every other value; some of these {@code from_json} reads by rules of its own, so the caller asks it.
 *
 * <p>For each value {@code from_json} opens a reader with a buffer of 8 KiB, which takes longer than to parse it.
 */
public final class JsonObject implements UDF1<byte[], Row> {
  private static final long serialVersionUID = 1L;
  private static final JsonFactory JSON = new JsonFactory();
  // Spark's name of the type; of a struct, its fields; of an array, its element.
  private final String type;
  private final List<JsonObject> parts = new ArrayList<>();
  private final Map<String, Integer> places = new HashMap<>();
  private final DecimalType decimal;

  private JsonObject(DataType kind) {
    type = kind.typeName().split("\\(")[0];
    decimal = kind instanceof DecimalType number ? number : null;
    if (kind instanceof StructType struct) {
      for (StructField field : struct.fields()) {
        places.put(field.name(), parts.size());
        parts.add(new JsonObject(field.dataType()));
      }
    } else if (kind instanceof ArrayType array) {
      parts.add(new JsonObject(array.elementType()));
    }
  }

  /** Registers it as a SQL function of a value's bytes, for a schema as JSON whose types {@link #read} knows. */
  public static void register(SparkSession session, String name, String schema) {
    session.udf().register(name, new JsonObject(DataType.fromJson(schema)), DataType.fromJson(schema));
  }

  @Override
  public Row call(byte[] value) {
    try (JsonParser parser = value == null ? null : opened(value)) {
      Object row = parser == null ? null : read(parser, parser.nextToken());
      return row == null || parser.nextToken() != null ? null : (Row) row;
    } catch (IOException | RuntimeException malformed) {
      return null; // Jackson also throws the latter, such as for keys whose hashes collide; Spark takes both for a malformed value.
    }
  }

  private static JsonParser opened(byte[] value) throws IOException {
    for (byte one : value) {
      // Of bytes with a zero, Jackson would guess the encoding; of others than ASCII, it takes some that are not UTF-8.
      if (one <= 0) {
        String text = new String(value, StandardCharsets.UTF_8);
        return text.indexOf('\uFFFD') < 0 ? JSON.createParser(text) : null;
      }
    }
    return JSON.createParser(value);
  }

  /** The value that begins with a token; null where it is null or not of the type. */
  private Object read(JsonParser parser, JsonToken token) throws IOException {
    boolean whole = token == JsonToken.VALUE_NUMBER_INT;
    boolean number = whole || token == JsonToken.VALUE_NUMBER_FLOAT;
    return switch (type) {
      case "string" -> token == JsonToken.VALUE_STRING ? parser.getText() : null;
      case "long" -> whole ? (Object) parser.getLongValue() : null;
      case "integer" -> whole ? (Object) parser.getIntValue() : null;
      case "float" -> number ? (Object) parser.getFloatValue() : null;
      case "double" -> number ? (Object) parser.getDoubleValue() : null;
      case "decimal" -> number ? decimal(parser) : null;
      case "boolean" -> token != null && token.isBoolean() ? (Object) parser.getBooleanValue() : null;
      case "struct" -> token == JsonToken.START_OBJECT ? struct(parser) : null;
      case "array" -> token == JsonToken.START_ARRAY ? array(parser) : null;
      default -> throw new IllegalArgumentException(type);
    };
  }

  private BigDecimal decimal(JsonParser parser) throws IOException {
    // Spark writes out the digits of an exponent, which may take minutes.
    boolean plain = parser.getText().indexOf('e') < 0 && parser.getText().indexOf('E') < 0;
    BigDecimal rounded = plain ? parser.getDecimalValue().setScale(decimal.scale(), RoundingMode.HALF_UP) : null;
    return plain && rounded.precision() <= decimal.precision() ? rounded : null;
  }

  private Row struct(JsonParser parser) throws IOException {
    Object[] row = new Object[parts.size()];
    for (String name = parser.nextFieldName(); name != null; name = parser.nextFieldName()) {
      JsonToken token = parser.nextToken();
      Integer place = places.get(name);
      if (place == null) {
        parser.skipChildren();
        continue;
      }
      Object field = parts.get(place).read(parser, token);
      if (row[place] != null || (field == null && token != JsonToken.VALUE_NULL)) {
        return null;
      }
      row[place] = field;
    }
    return RowFactory.create(row);
  }

  private Object[] array(JsonParser parser) throws IOException {
    List<Object> elements = new ArrayList<>();
    for (JsonToken token = parser.nextToken(); token != JsonToken.END_ARRAY; token = parser.nextToken()) {
      elements.add(parts.get(0).read(parser, token));
      if (elements.get(elements.size() - 1) == null && token != JsonToken.VALUE_NULL) {
        return null;
      }
    }
    return elements.toArray();
  }
}
